"""The goals of uploads to a disk, of a result that is made up, what they cost at the least, and a smoke run."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psutil", reason="suites need the extra 'bench'")
pytest.importorskip("scipy", reason="tables need the extra 'bench'")

from benchmarks.backends import SERVICES
from benchmarks.harness import results, servers, worker
from benchmarks.suites.disk_uploads import bench_disk_uploads, tables, workload
from tests.benchmarks import samples
from tests.benchmarks.running import needs
from tests.conftest import with_services

ROOT = Path(__file__).resolve().parent.parent.parent
#: Divides nothing.
SIZE = 1_300_001


def row(seconds: float, cpu: float) -> results.VariantResult:
    made = samples.variant([seconds] * 3)
    for run in made.runs:
        run["server_cpu_seconds"] = cpu
    return made


def test_what_is_asked() -> None:
    rows = {
        "stock": row(8, 6),
        "fastio": row(4, 5),
        "stock, chunked": row(9, 8),
        "fastio, chunked": row(6, 8.8),
        "reference-parts": row(5, 4),
        "reference-md5": row(3, 3),
        "reference-sha512": row(2, 2),
    }
    case = samples.case(rows, name="glance-32-disk")
    (table,) = tables.judgement(samples.result(case, suite="disk_uploads"))
    assert [(line[0], line[4], line[-1]) for line in table.rows] == [
        ("glance-32-disk, MB/s", "2 x stock", "yes"),
        ("glance-32-disk, server CPU s", "0.833 x stock", "yes"),
        ("glance-32-disk, chunked, MB/s", "1.5 x stock", "no"),
        ("glance-32-disk, chunked, server CPU s", "1.1 x stock", "no"),
        ("glance-32-disk, server CPU s, the parts for stock", "1.25 x parts", "no"),
        ("glance-32-disk, MB/s, the slower hash for stock", "0.75 x hash", "no"),
    ]


def test_in_memory_more_is_asked() -> None:
    case = samples.case({"stock": row(8, 6), "fastio": row(5, 5)}, name="glance-33-shipped-memory")
    (table,) = tables.judgement(samples.result(case, suite="disk_uploads"))
    assert [*table.rows[0][3:]] == ["≥ 1.8 x stock", "1.6 x stock", "no"]


@pytest.mark.parametrize("name", ["reference-parts", "reference-md5", "reference-sha512"])
def test_a_limit_has_the_known_hashes(name: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(worker.SURROUNDINGS_VARIABLE, json.dumps({"access": {"images": str(tmp_path)}}))
    done = workload.VARIANTS[name]({"size": SIZE, "settled": 1})
    assert done["verified"] and done["bytes"] == SIZE
    assert done["server_cpu_seconds"] == done["cpu_seconds"] > 0
    assert not [*tmp_path.iterdir()]


def test_a_limit_notices_wrong_bytes(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(worker.SURROUNDINGS_VARIABLE, json.dumps({"access": {"images": str(tmp_path)}}))
    parameters: dict[str, Any] = {"size": SIZE}
    assert workload.VARIANTS["reference-parts"](parameters)["verified"]
    path = worker.random_payload(SIZE).path
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert not workload.VARIANTS["reference-parts"](parameters)["verified"]


def test_memory_is_no_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(worker.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(servers, "file_system", lambda directory: "tmpfs" if directory == tmp_path else "")
    case = next(case for case in bench_disk_uploads.CASES if case.on_disk)
    assert servers.why_no_disk() == f"{tmp_path} is in memory: FASTIO_BENCHMARK_CACHE has to name a directory on a disk"
    assert case.why_not()
    monkeypatch.setattr(servers, "file_system", lambda directory: "ext4")
    assert not servers.why_no_disk()


@with_services
def test_a_smoke_run(tmp_path: Path) -> None:
    for release in SERVICES:
        needs(release)
    if reason := servers.why_no_disk():
        pytest.skip(reason)
    command = [sys.executable, "-m", "pytest", "-q", "--benchmark-quiet", "--quick", "-p", "no:cacheprovider"]
    command += [bench_disk_uploads.__file__, "--result", str(tmp_path / "result.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    found = results.read(tmp_path / "result.json")
    assert [case.name for case in found.cases] == ["glance-33-shipped-disk", "glance-32-disk"]
    for case in found.cases:
        assert all(run["verified"] for row in case.variants.values() for run in row.measured())
        assert case.backend["directory"] == servers.described(worker.cache_directory())
