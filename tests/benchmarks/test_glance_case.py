"""The benchmarks of glance with little data, and what is read from their results; they notice what is wrong."""

import contextlib
import hashlib
import io
import itertools
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness import other_requests, servers, worker
from benchmarks.harness.other_requests import Requests
from benchmarks.suites.clients import bench_clients
from benchmarks.suites.clients import workload as clients
from benchmarks.suites.glance import bench_glance
from benchmarks.suites.glance import workload as glance
from benchmarks.suites.glance.bench_glance import ELSEWHERE
from tests.benchmarks.running import needs, work
from tests.conftest import with_services
from tests.stores.http_server import Answer, in_turn, serving

pytestmark = [with_services, pytest.mark.usefixtures("cache")]

#: Divides nothing.
SIZE = 300_001


def test_downloads_from_another_address(monkeypatch: pytest.MonkeyPatch) -> None:
    needs("http")
    data = os.urandom(SIZE)
    with serving(lambda request: Answer(body=data, breaks_off=SIZE)) as running:
        access = {"backend": "http", "url": running.url, "place": {"directory": "/"}}
        prepared = {"images": {"": "image"}, "multihash": hashlib.sha512(data).hexdigest()}
        told = {"access": access, "pids": [os.getpid()], "prepared": prepared}
        monkeypatch.setenv(worker.SURROUNDINGS_VARIABLE, json.dumps(told))
        found = glance.download({"size": SIZE, "source": ELSEWHERE})
    assert found["verified"]
    assert running.clients == [ELSEWHERE] * 2


# --- what uploads cost at the least


def test_a_limit_notices_wrong_bytes(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Of its own: the payload is changed.
    size = SIZE + 7
    monkeypatch.setenv(worker.SURROUNDINGS_VARIABLE, json.dumps({"access": {"images": str(tmp_path)}}))
    parameters: dict[str, Any] = {"size": size}
    assert glance.VARIANTS["reference-parts"](parameters)["verified"]
    path = worker.random_payload(size).path
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert not glance.VARIANTS["reference-parts"](parameters)["verified"]


def test_memory_is_no_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(worker.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(servers, "file_system", lambda directory: "tmpfs" if directory == tmp_path else "")
    case = next(case for case in bench_glance.CASES if case.on_disk)
    assert servers.why_no_disk() == f"{tmp_path} is in memory: FASTIO_BENCHMARK_CACHE has to name a directory on a disk"
    assert case.why_not()
    monkeypatch.setattr(servers, "file_system", lambda directory: "ext4")
    assert not servers.why_no_disk()


# --- runs by hand, beside a running server


@pytest.fixture
def told(tmp_path: Path) -> Iterator[dict[str, Any]]:
    needs("glance-32")
    with servers.running("glance-32", {}, tmp_path) as told:
        yield {**told, "beside": {}}


def test_a_server_that_does_not_take_its_image(told: dict[str, Any]) -> None:
    told["beside"] = {"broken": {**told, "access": {**told["access"], "url": "http://127.0.0.1:1"}}}
    prepared = work("glance", "prepare", {"size": SIZE, "task": "download"}, told)
    assert prepared["failed"]["broken"].startswith("it does not take its image: ")
    assert list(prepared["images"]) == [""]


def test_wrong_data_is_noticed(told: dict[str, Any], cache: Path) -> None:
    told["prepared"] = work("glance", "prepare", {"size": SIZE, "task": "download"}, told)
    run = work("glance", "transfer", {"size": SIZE, "task": "download"}, told)
    assert run["verified"] and 0 < run["generator_cpu"] <= 1.1
    image = told["prepared"]["images"][""]
    stored = Path(told["access"]["images"]) / image
    content = bytearray(stored.read_bytes())
    content[-1] ^= 1
    stored.write_bytes(content)
    assert not work("glance", "transfer", {"size": SIZE, "task": "download"}, told)["verified"]
    client = {**told, "prepared": {"image": image, "multihash": told["prepared"]["multihash"]}}
    command = {"size": SIZE, "scheme": "http", "python": ""}
    client["prepared"]["least"] = image
    assert not work("clients", "curl", {**command, "task": "image-save"}, client)["verified"]
    # An upload whose hash is another than the one that is known of the payload.
    kept = cache / f"random-{SIZE}-0.digests"
    before = kept.read_text()
    kept.write_text(before[:-1] + ("0" if before[-1] != "0" else "1"))
    try:
        assert not work("glance", "transfer", {"size": SIZE, "task": "upload"}, told)["verified"]
        assert not work("clients", "curl", {**command, "task": "image-create"}, client)["verified"]
    finally:
        kept.unlink()
    assert work("glance", "transfer", {"size": SIZE, "task": "upload"}, told)["verified"]
    assert work("clients", "curl", {**command, "task": "image-create"}, client)["verified"]
    assert [path.name for path in stored.parent.iterdir()] == [image]


# --- the requests beside the transfers


def test_requests_that_fail() -> None:
    # The first says that the server is there.
    answers = itertools.chain([Answer(breaks_off=0)], itertools.repeat(Answer("503 Busy", breaks_off=0)))
    message = "requests were not answered"
    with (
        serving(in_turn(answers)) as running,
        Requests(running.port, "/") as requests,
        pytest.raises(RuntimeError, match=message),
    ):
        requests.stop()


def test_a_transfer_that_ends_at_once_has_one_request_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_requests, "_request", lambda url: 1.5)
    monkeypatch.setattr(other_requests, "end_of_input", lambda ended: ended())
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n"))
    assert other_requests._go_on("") == {"milliseconds": [1.5], "failed": 0}


# --- the commands of the clients


def test_a_command_is_timed(cache: Path) -> None:
    cache.mkdir(exist_ok=True)
    script = "import time; end = time.process_time() + 0.4\nwhile time.process_time() < end: pass\ntime.sleep(0.4)"
    figures = clients.timed([sys.executable, "-c", script])
    assert figures["cpu_seconds"] >= 0.4 and figures["seconds"] >= 0.8
    assert figures["user_seconds"] + figures["system_seconds"] == pytest.approx(figures["cpu_seconds"])
    assert figures["load_percent"] == pytest.approx(100 * figures["cpu_seconds"] / figures["seconds"])


def test_a_command_that_fails(cache: Path) -> None:
    with pytest.raises(RuntimeError, match="exit status 3\nno such luck"):
        clients.timed(["sh", "-c", "echo no such luck >&2; exit 3"])


def test_commands_that_fastio_does_not_patch(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``fastio`` beside a Python: one whose patches are not in effect, and one that fails."""
    cache.mkdir(exist_ok=True)
    command = tmp_path / "fastio"
    for said, fails in (('[["x", true]]', False), ('[["x", true], ["y", false]]', True), ("[]", True), ("", True)):
        command.write_text(f"#!/bin/sh\necho '{said}'\n" + ("" if said else "exit 3\n"))
        command.chmod(0o755)
        context = pytest.raises(RuntimeError, match="not all in effect") if fails else contextlib.nullcontext()
        with context:
            clients.require_patches(str(tmp_path / "python"))


# --- the suites


@pytest.mark.parametrize("suite", [bench_glance, bench_clients])
def test_without_the_environments(suite: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("BENCHMARK_GLANCE32", "BENCHMARK_GLANCE33"):
        monkeypatch.delenv(variable, raising=False)
    how = "python -m benchmarks.backends.glance_environments"
    for case in suite.CASES:
        assert how in case.why_not() or not case.backend
    monkeypatch.setattr(bench_clients, "PYTHON", "")
    assert all(how in each.skip for each in bench_clients._commands("image-save", "http").all_variants())


def test_a_server_that_can_not_be_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    beside = {"one": {"failed": "it did not start\nits log"}, "other": {"access": {}, "pids": []}}
    told = {"beside": beside, "prepared": {"failed": {"other": "it does not take its image"}}}
    monkeypatch.setenv(worker.SURROUNDINGS_VARIABLE, json.dumps(told))
    reasons = {"one": "it did not start", "other": "it does not take its image", "none": "there is no such server"}
    for name, reason in reasons.items():
        with pytest.raises(RuntimeError, match=f"^{name}: {reason}$"):
            glance.server({"server": name})
    assert "its log" in capsys.readouterr().err
