"""The goals of uploads to a disk, of a result that is made up, what they cost at the least, and a smoke run."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psutil", reason="suites need the extra 'bench'")
pytest.importorskip("scipy", reason="tables need the extra 'bench'")

from benchmarks.harness import servers, worker
from benchmarks.suites.disk_uploads import bench_disk_uploads, workload

#: Divides nothing.
SIZE = 1_300_001


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
