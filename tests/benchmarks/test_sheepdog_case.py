"""The sheepdog case is what it says: real commands, right data, the loops of their time."""

import dataclasses
import os

import pytest

from benchmarks.harness import engine
from benchmarks.suites.sheepdog import bench_sheepdog
from benchmarks.suites.sheepdog import workload as sheepdog
from tests.benchmarks.running import measured, work
from tests.conftest import needs_eventlet, needs_oslo

pytestmark = [needs_oslo, needs_eventlet, pytest.mark.usefixtures("cache")]

SIZE = 1 << 20


def cases() -> dict[str, engine.Case]:
    return {case.name: case for case in bench_sheepdog.CASES}


def test_the_rows_are_those_that_were_promised():
    rows = {name: [variant.title for variant in case.all_variants()] for name, case in cases().items()}
    modes = ["native-stock", "eventlet-stock", "eventlet-fastio", "native-fastio"]
    assert set(rows["cat"]) >= {*modes, "eventlet-legacy", "reference-readall"}
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


def test_stock_eventlet_writes_pieces_of_half_a_kilobyte():
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
    pytest.importorskip("glance_store", reason="glance_store is not installed: pip install '.[sheepdog]'")
    case = dataclasses.replace(cases()[name], quick={"size": (5 << 20) + 17})
    for title, row in measured(case, engine.Options(quick=True)).variants.items():
        assert row.runs[0]["bytes"] == (5 << 20) + 17, title
