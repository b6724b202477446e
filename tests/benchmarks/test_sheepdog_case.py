"""The sheepdog case is what it says: real commands, right data, the loops of their time."""

import dataclasses
import json
import os
import subprocess
import sys

import pytest

from benchmarks.harness import engine
from benchmarks.suites.sheepdog import bench_sheepdog, python27
from benchmarks.suites.sheepdog import workload as sheepdog
from tests.benchmarks.running import PATIENCE, measured, work
from tests.conftest import needs_eventlet, needs_oslo

pytestmark = [needs_oslo, needs_eventlet, pytest.mark.usefixtures("cache")]

SIZE = 1 << 20


def cases() -> dict[str, engine.Case]:
    return {case.name: case for case in bench_sheepdog.CASES}


def test_the_rows_are_those_that_were_promised():
    rows = {name: [variant.title for variant in case.all_variants()] for name, case in cases().items()}
    modes = ["native-stock", "eventlet-stock", "eventlet-fastio", "native-fastio"]
    assert set(rows["cat"]) >= {*modes, "eventlet-legacy", "reference-readall", "2016-native", "2016-eventlet"}
    for name in ("read-real", "read-none", "write-real", "write-none"):
        assert set(rows[name]) >= {*modes, "reference-pipeline"}
    for name, case in cases().items():
        assert name.startswith("driver") or case.parameters.get("chunk", 64 << 20) == 64 << 20
        assert case.parameters.get("size") >= 128 << 20
        assert case.rounds >= 7


def test_the_legacy_loop_reads_a_kilobyte_and_waits_twice_for_it():
    found = work("sheepdog", "eventlet-legacy", {"task": "cat", "size": SIZE})
    assert found["verified"] is True
    assert found["reads"] == SIZE // 1024
    assert found["waits"] == pytest.approx(2 * SIZE // 1024, rel=0.02)


def test_stock_eventlet_writes_half_a_kilobyte_at_a_time():
    found = work("sheepdog", "eventlet-stock", {"task": "write", "pauses": "none", "size": SIZE, "chunk": SIZE})
    assert found["verified"] is True
    assert found["waits"] >= 2 * SIZE // 512


def test_one_command_per_chunk():
    parameters = {"size": 10, "chunk": 4}
    assert sheepdog.pieces(parameters) == [(0, 4), (4, 4), (8, 2)]
    assert sheepdog.collie("read", 4, 4) == [
        "collie", "vdi", "read", "-a", "127.0.0.1", "-p", "7000", "image", "4", "4",
    ]  # fmt: skip


def test_the_pauses_are_the_parameters(monkeypatch):
    for variable in [name for name in os.environ if name.startswith("DOG_")]:
        monkeypatch.delenv(variable)
    with sheepdog.writable_cluster({"size": 10, "chunk": 4}) as (directory, _):
        assert sheepdog.dog_environment(directory, {"pauses": "none"})["DOG_FETCH_MS"] == "0"
        assert "DOG_FETCH_MS" not in sheepdog.dog_environment(directory, {"pauses": "real"})
        with pytest.raises(ValueError, match="pauses"):
            sheepdog.dog_environment(directory, {"pauses": "some"})


def test_wrong_data_in_the_image_is_noticed():
    from benchmarks.backends import dog

    with sheepdog.writable_cluster({"size": 10_000, "chunk": 4_000}) as (directory, sources):
        assert not sheepdog.written(directory, sources)
        image = dog.image_file(directory, "image")
        right = b"".join(source.path.read_bytes() for source in sources)
        image.write_bytes(right)
        assert sheepdog.written(directory, sources)
        for wrong in (right[:-1] + bytes([right[-1] ^ 1]), right[:-1], right + b"x", right[4_000:] + right[:4_000]):
            image.write_bytes(wrong)
            assert not sheepdog.written(directory, sources)
    assert not directory.exists()


@pytest.mark.parametrize("name", ["driver-get-none", "driver-add-none"])
def test_every_row_of_the_driver_runs_with_the_right_data(name: str) -> None:
    """With more than one object of 4 MiB, and no whole number of anything."""
    pytest.importorskip("glance_store", reason="glance_store is not installed: pip install fastio[sheepdog]")
    case = dataclasses.replace(cases()[name], quick={"size": (5 << 20) + 17})
    for title, row in measured(case, engine.Options(quick=True)).variants.items():
        assert row.runs[0]["bytes"] == (5 << 20) + 17, title


# --- the rows of 2016


def test_without_an_environment_the_rows_of_2016_say_so(monkeypatch):
    monkeypatch.delenv(bench_sheepdog.PYTHON27, raising=False)
    assert [variant.title for variant in bench_sheepdog.of_2016()] == [
        "2016-native", "2016-eventlet", "2016-eventlet-100MiB-reads",
    ]  # fmt: skip
    assert all(bench_sheepdog.PYTHON27 in variant.skip for variant in bench_sheepdog.of_2016())
    monkeypatch.setenv(bench_sheepdog.PYTHON27, "/nowhere/python")
    assert all("/nowhere/python" in variant.skip for variant in bench_sheepdog.of_2016())


def test_without_python27_there_is_a_clear_message(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "none" / "python"))
    assert python27.main([str(tmp_path / "environment")]) == 0
    assert "skipped: there is no python2.7" in capsys.readouterr().err
    # As pyenv's: it is there, and does not run.
    (tmp_path / "python2.7").write_text("#!/bin/sh\nexit 127\n")
    (tmp_path / "python2.7").chmod(0o755)
    assert python27.main([str(tmp_path / "environment")]) == 0
    assert "skipped: there is no python2.7" in capsys.readouterr().err


@pytest.mark.skipif(not os.environ.get(bench_sheepdog.PYTHON27), reason=f"{bench_sheepdog.PYTHON27} is not set")
@pytest.mark.parametrize("task", ["cat", "read"])
@pytest.mark.parametrize(
    ("variant", "reads_per_mib"), [("native", 256), ("eventlet", 1024), ("eventlet-100MiB-reads", 16)]
)
def test_python27_read_as_it_did(task, variant, reads_per_mib):
    parameters = {"task": task, "pauses": "none", "size": 2 * SIZE, "chunk": SIZE, "python3": sys.executable}
    command = [os.environ[bench_sheepdog.PYTHON27], str(bench_sheepdog.SCRIPT), variant, json.dumps(parameters)]
    environment = {**os.environ, "PYTHONPATH": str(engine.ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["verified"] is True
    assert found["python"].startswith("2.7.")
    assert found["reads"] == pytest.approx(2 * reads_per_mib, rel=0.1)
