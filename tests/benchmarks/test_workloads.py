"""Workloads notice wrong bytes, stock under the name of fastio, and bad parameters. ``--quick`` runs all."""

import pathlib
import re
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.harness import probes, worker
from benchmarks.harness.modes import MODES, read_all
from benchmarks.suites.clients import bench_clients
from benchmarks.suites.processes import commands
from tests.benchmarks.running import started, work
from tests.conftest import needs_eventlet, needs_oslo

pytestmark = pytest.mark.usefixtures("cache")

KIB = 1 << 10

#: Divides nothing, and is more than a pipe holds.
SIZE = 300_001


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The payloads that the runs below have, each with one wrong byte."""
    directory = tmp_path_factory.mktemp("wrong")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(worker.CACHE_VARIABLE, str(directory))
        payloads = [*map(worker.random_payload, (SIZE, 70_001, 23_077)), worker.text_payload(SIZE)]
    for payload in payloads:
        content = bytearray(payload.path.read_bytes())
        # Still UTF-8, and still as many lines.
        content[-2] = ord("y") if content[-2] != ord("y") else ord("z")
        payload.path.write_bytes(content)
    return directory


def has_its_package(operation: str) -> None:
    for package in bench_clients.OPERATIONS.get(operation, ())[2:]:
        pytest.importorskip(package, reason="its client is measured")


#: Variant, operation and parameters.
WRONG_BYTES = [
    ("native-stock", "child-output", {"calls": 2}),
    ("eventlet-fastio", "child-output", {"streams": "both", "kind": "text"}),
    ("asyncio", "child-output", {}),
    ("reference", "child-output", {}),
    ("native-fastio", "child-input", {}),
    ("reference", "child-input", {}),
    ("eventlet-stock", "pipe-read", {"style": "readinto", "n": 1000}),
    ("eventlet-fastio", "pipe-read", {"style": "text_lines"}),
    ("eventlet-fastio", "pipe-write", {"n": 7000}),
    ("eventlet-fastio", "pipe-echo", {"n": 10_000}),
    ("native-stock", "read-at", {"source": "pipe", "offset": 24}),
    ("eventlet-fastio", "child-output", {"through": "oslo", "at_once": 3, "calls": 2, "heartbeat": 1}),
    ("eventlet-stock", "wsgi-serving", {"chunk": 23_077, "kind": "chunked", "heartbeat": 1}),
    ("eventlet-fastio", "wsgi-serving", {"chunk": 23_077, "kind": "sendall"}),
    *(
        ("native-stock", operation, {"first": 70_001, "url": "plain"})
        for operation in (*bench_clients.OPERATIONS, "upload-sendfile")
    ),
]


@needs_eventlet
@needs_oslo
@pytest.mark.parametrize(("variant", "operation", "parameters"), WRONG_BYTES)
def test_wrong_bytes_are_not_verified(
    wrong: pathlib.Path, cache: pathlib.Path, variant: str, operation: str, parameters: dict[str, Any]
) -> None:
    """And right ones are."""
    has_its_package(operation)
    given = {"size": SIZE, "operation": operation, **parameters}
    assert work("processes", variant, given, FASTIO_BENCHMARK_CACHE=str(wrong))["verified"] is False
    assert work("processes", variant, given)["verified"] is True


@needs_eventlet
@pytest.mark.parametrize(
    ("variant", "operation", "parameters"),
    [
        ("native-fastio", "child-input", {}), ("eventlet-fastio", "pipe-write", {"n": 64 * KIB}),
        ("native-fastio", "upload-memory", {"first": 70_001, "url": "plain"}),
        ("eventlet-stock", "wsgi-serving", {"chunk": 64 * KIB, "kind": "length"}),
    ],
)  # fmt: skip
def test_payloads_are_in_memory_before_the_measured_call(
    variant: str, operation: str, parameters: dict[str, Any]
) -> None:
    """The call that is measured reads no payload: its file would take longer than the transfer."""
    has_its_package(operation)
    size = 32 << 20
    found = work("processes", variant, {"size": size, "operation": operation, **parameters})
    assert found["peak_memory"] < size / 2


@needs_eventlet
@needs_oslo
@pytest.mark.parametrize("variant", [name for name, mode in MODES.items() if mode.fast])
def test_a_fast_row_that_is_not_patched_fails(variant: str) -> None:
    done = started("processes", variant, {"size": SIZE, "operation": "child-output"}, FASTIO="0")
    assert done.returncode != 0
    assert "is not applied here" in done.stderr


@needs_eventlet
@needs_oslo
def test_settings_reach_fastio() -> None:
    parameters = {
        "size": SIZE,
        "operation": "child-output",
        "settings": {"chunk_size": "64KiB", "yield_bytes": 128 * KIB},
    }
    settings = work("processes", "eventlet-fastio", parameters)["fastio"]["settings"]
    assert settings["chunk_size"]["value"] == 64 * KIB
    assert settings["yield_bytes"]["value"] == 128 * KIB


@needs_eventlet
@needs_oslo
@pytest.mark.parametrize(
    ("variant", "parameters", "message"),
    [
        ("eventlet-stock", {"operation": "pipe-read", "style": "sideways"}, "style 'sideways': allowed are read_n, "),
        ("native-stock", {"operation": "child-output", "kind": "txt"}, "kind 'txt': allowed are binary, text"),
        ("native-stock", {"operation": "child-output", "streams": "all"}, "streams 'all': allowed are stdout, both"),
        ("native-stock", {"operation": "child-input", "through": "os"}, "through 'os': allowed are popen, oslo"),
        ("native-stock", {"task": "rest", "commands": 1}, "task 'rest': allowed are execute, "),
        ("eventlet-stock", {"operation": "wsgi-serving", "kind": "rest"}, "kind 'rest': allowed are length, "),
        ("eventlet-stock", {"operation": "child-output", "at_once": 10**9}, "take fewer or smaller"),
    ],
)
def test_parameters_that_can_not_be(variant: str, parameters: dict[str, Any], message: str) -> None:
    if variant.startswith("eventlet"):
        done = started("processes", variant, {"size": SIZE, **parameters})
        assert done.returncode != 0 and message in done.stderr
    else:
        with pytest.raises(ValueError, match=re.escape(message)):
            worker.variant("processes", variant)({"size": SIZE, **parameters})


def test_latencies() -> None:
    found = commands.latencies([number / 1000 for number in range(1, 102)])
    assert found == {"p50_ms": pytest.approx(51), "p90_ms": pytest.approx(91)}


def test_a_watcher_sees_an_exit(run_python: Callable[..., Any]) -> None:
    run_python(
        """
        import subprocess
        import time

        from benchmarks.suites.processes.commands import Watcher

        watcher = Watcher()
        for _ in range(2):
            with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
                watcher.watch(child.pid)
                before = time.monotonic()
            assert before < watcher.exit_time() < time.monotonic()
        watcher.close()
        """
    )


def test_percentile() -> None:
    assert worker.percentile([3, 1, 2, 4], 0.5) == 2
    assert worker.percentile(list(range(1, 201)), 0.99) == 198
    assert worker.percentile([7], 0.99) == 7


def test_a_long_stop_counts_by_its_length() -> None:
    """One stop of 1 s in 10 s: one request in ten comes in it, one in a hundred in its first tenth."""
    late = [0.0] * 8_999 + [1.0]
    assert worker.percentile(late, 0.99) == 0
    assert probes.arrival_percentile(late, 10, 0.99) == pytest.approx(0.9)
    figures = probes.lateness(late, 0.001)
    assert figures["worst_ms"] == pytest.approx(1000)
    assert figures["arrival_p99_ms"] == pytest.approx(900, rel=0.001)
    assert figures["heartbeats"] == 9000


def test_a_reference_whose_command_fails_is_no_result() -> None:
    assert read_all(["echo", "all"], 1 << 16) == b"all\n"
    with pytest.raises(subprocess.CalledProcessError):
        read_all(["sh", "-c", "echo part; exit 3"], 1 << 16)
