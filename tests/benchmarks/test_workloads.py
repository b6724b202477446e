"""Every variant of every workload at a small size, in a process of its own."""

import importlib
import pathlib
import re
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("numpy", reason="suites need the extra 'bench'")

import benchmarks
from benchmarks.harness import worker
from benchmarks.harness.modes import MODES, read_all
from benchmarks.suites.commands import workload as commands
from benchmarks.suites.communicate import workload as communicate
from benchmarks.suites.fairness import workload as fairness
from benchmarks.suites.peers import workload as peers
from benchmarks.suites.sweep import tables as sweep
from tests.benchmarks.running import started, work, work_many
from tests.conftest import needs_eventlet, needs_oslo

pytestmark = pytest.mark.usefixtures("cache")

KIB = 1 << 10

#: Divides nothing, and is more than a pipe holds.
SIZE = 300_001
GREEN_STYLES: list[dict[str, Any]] = [
    {"style": "read"},
    {"style": "read", "bufsize": -1},
    {"style": "read_n", "n": 1000},
    {"style": "readinto", "n": 70_000},
    {"style": "lines", "bufsize": -1},
    {"style": "lines", "most": 5_001},
    {"style": "text_lines"},
    {"style": "write"},
    {"style": "write_n", "n": 1000},
    {"style": "write_n", "n": 1000, "bufsize": -1},
    {"style": "echo", "n": 1000},
]
#: For each workload the parameters that together reach all of its code.
PARAMETERS: dict[str, list[dict[str, Any]]] = {
    "communicate": [
        {"size": SIZE, "total": 2 * SIZE},
        {"size": SIZE, "streams": "both", "mode": "text"},
        {"size": SIZE, "streams": "both", "through": "oslo"},
        {"size": SIZE, "mode": "text", "through": "oslo"},
    ],
    "input": [
        {"size": SIZE, "stock_green_size": 70_001},
        {"size": SIZE, "stock_green_size": 70_001, "through": "oslo"},
    ],
    "commands": [
        {"task": "execute", "commands": 3, "heap": 1 << 20},
        {"task": "late_exit", "commands": 3},
        {"task": "wait", "commands": 2},
    ],
    "green_pipe": [{"size": SIZE, **parameters} for parameters in GREEN_STYLES],
    "fairness": [{"size": SIZE, "transfers": 3, "batches": 2}],
    "memory": [
        {"size": SIZE, "stock_green_size": 70_001, "task": task} for task in ("output", "text", "input", "green_pipe")
    ],
    "sweep": [
        {
            "size": SIZE, "transfers": 2, "transfer_size": 70_001,
            "chunk_size": 32 * KIB, "pipe_size": 128 * KIB, "yield_bytes": 64 * KIB,
        }
    ],
    "peers": [{"size": SIZE, "stock_green_size": 70_001, "direction": direction} for direction in ("output", "input")],
    # 13 chunks of it are SIZE.
    "uploads": [{"size": SIZE, "body": body} for body in ("file", "memory")],
    "wsgi": [{"size": SIZE, "chunk": 23_077, "task": task} for task in ("length", "chunked", "sendall")],
}  # fmt: skip


def runs() -> Iterator[Any]:
    for workload, choices in PARAMETERS.items():
        for variant in importlib.import_module(f"benchmarks.suites.{workload}.workload").VARIANTS:
            # These are those of the other suites.
            if workload in ("memory", "peers") and variant in MODES and variant != "eventlet-fastio":
                continue
            # There is no GreenPipe in a native process.
            wanted = [each for each in choices if variant.startswith("eventlet") or each.get("task") != "green_pipe"]
            # These do what they do whatever the other parameters are.
            if workload in ("communicate", "input") and variant not in MODES:
                wanted = wanted[:1]
            # A watcher is forked before anything is patched.
            for some in [[each] for each in wanted] if workload == "commands" else [wanted]:
                yield workload, variant, some


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


def test_every_workload_is_run_here() -> None:
    directory = pathlib.Path(benchmarks.__file__).parent / "suites"
    # These have tests of their own.
    others = {"sheepdog", "sheepdog_driver", "stores", "glance", "glance_client", "concurrency"}
    others |= {
        "clients",
        "counting",
        "disk_swift",
        "disk_uploads",
        "imports",
        "network",
        "never_slower",
        "offered_load",
        "slow_clients",
        "workload_matrix",
    }
    others |= {"trace", "workload_matrix"}
    assert {path.parent.name for path in directory.glob("*/workload.py")} - others == set(PARAMETERS)


def test_every_green_pipe_style_is_run_here() -> None:
    from benchmarks.suites.green_pipe import workload as green_pipe

    assert {parameters["style"] for parameters in GREEN_STYLES} == set(green_pipe.STYLES)


@needs_eventlet
@needs_oslo
@pytest.mark.parametrize(("workload", "variant", "choices"), [*runs()])
def test_a_run_gives_the_right_bytes(workload: str, variant: str, choices: list[dict[str, Any]]) -> None:
    absent = peers.missing(variant)
    if absent:
        pytest.skip(f"not installed: {', '.join(absent)}")
    for parameters, result in zip(choices, work_many(workload, variant, choices), strict=True):
        assert result["verified"] is True, parameters
        assert result["seconds"] > 0
        assert result["cpu_seconds"] >= 0
        assert ("fastio" in result) == ("fastio" in variant)
        if workload == "commands":
            continue
        # Smaller for stock eventlet's input, and twice with both outputs.
        slow = parameters.get("stock_green_size") if variant == "eventlet-stock" else None
        task = parameters.get("task", parameters.get("direction"))
        size = slow if slow and (workload == "input" or task == "input") else parameters["size"]
        size = min(size, parameters.get("most", size))
        factor = 2 if "total" in parameters else 6 if workload == "fairness" else 1
        both = parameters.get("streams") == "both" and not variant.startswith("reference")
        assert result["bytes"] == size * factor * (2 if both else 1), parameters


WRONG_BYTES = [
    ("communicate", "native-stock", PARAMETERS["communicate"][0]),
    ("communicate", "eventlet-fastio", PARAMETERS["communicate"][1]),
    ("communicate", "reference-readall", PARAMETERS["communicate"][0]),
    ("communicate", "reference-readv", PARAMETERS["communicate"][0]),
    ("input", "native-fastio", PARAMETERS["input"][0]),
    ("input", "reference-write", PARAMETERS["input"][0]),
    ("green_pipe", "eventlet-stock", {"size": SIZE, "style": "readinto", "n": 1000}),
    ("green_pipe", "eventlet-fastio", {"size": SIZE, "style": "text_lines"}),
    ("green_pipe", "eventlet-fastio", {"size": SIZE, "style": "write"}),
    ("green_pipe", "eventlet-fastio", {"size": SIZE, "style": "echo", "n": 10_000}),
    ("fairness", "eventlet-fastio", PARAMETERS["fairness"][0]),
    ("memory", "native-stock", PARAMETERS["memory"][0]),
    ("sweep", "eventlet-fastio", PARAMETERS["sweep"][0]),
    ("wsgi", "eventlet-stock", PARAMETERS["wsgi"][1]),
    ("wsgi", "eventlet-fastio", PARAMETERS["wsgi"][2]),
    ("peers", "asyncio", PARAMETERS["peers"][0]),
    ("peers", "asyncio", PARAMETERS["peers"][1]),
]


@needs_eventlet
@needs_oslo
@pytest.mark.parametrize(("workload", "variant", "parameters"), WRONG_BYTES)
def test_wrong_bytes_are_not_verified(
    wrong: pathlib.Path, workload: str, variant: str, parameters: dict[str, Any]
) -> None:
    result = work(workload, variant, parameters, FASTIO_BENCHMARK_CACHE=str(wrong))
    assert result["verified"] is False


@needs_eventlet
@needs_oslo
@pytest.mark.parametrize("variant", [name for name, mode in MODES.items() if mode.fast])
def test_a_fast_row_that_is_not_patched_fails(variant: str) -> None:
    done = started("communicate", variant, {"size": SIZE}, FASTIO="0")
    assert done.returncode != 0
    assert "is not applied here" in done.stderr


@needs_eventlet
@needs_oslo
def test_settings_reach_fastio() -> None:
    parameters = {"size": SIZE, "settings": {"chunk_size": "64KiB", "yield_bytes": 128 * KIB}}
    settings = work("communicate", "eventlet-fastio", parameters)["fastio"]["settings"]
    assert settings["chunk_size"]["value"] == 64 * KIB
    assert settings["yield_bytes"]["value"] == 128 * KIB


@needs_eventlet
@needs_oslo
@pytest.mark.parametrize(
    ("workload", "variant", "parameters", "message"),
    [
        ("green_pipe", "eventlet-stock", {"size": SIZE, "style": "sideways"}, "style 'sideways': allowed are read, "),
        ("peers", "asyncio", {"size": SIZE, "direction": "up"}, "direction 'up': allowed are output, input"),
        ("commands", "native-stock", {"task": "rest", "commands": 1}, "task 'rest': allowed are execute, "),
        ("memory", "native-stock", {"size": SIZE, "task": "rest"}, "task 'rest': allowed are output, "),
        ("memory", "native-stock", {"size": SIZE, "task": "green_pipe"}, "under eventlet only"),
        ("communicate", "native-stock", {"size": SIZE, "mode": "txt"}, "mode 'txt': allowed are binary, text"),
        ("communicate", "native-stock", {"size": SIZE, "streams": "all"}, "streams 'all': allowed are stdout, both"),
        ("input", "native-stock", {"size": SIZE, "through": "os"}, "through 'os': allowed are popen, oslo"),
        ("wsgi", "eventlet-stock", {"size": SIZE, "chunk": 1000, "task": "rest"}, "task 'rest': allowed are length, "),
        ("fairness", "eventlet-stock", {"size": SIZE, "transfers": 10**9}, "take fewer or smaller"),
    ],
)
def test_parameters_that_can_not_be(workload: str, variant: str, parameters: dict[str, Any], message: str) -> None:
    if variant.startswith("eventlet"):
        done = started(workload, variant, parameters)
        assert done.returncode != 0 and message in done.stderr
    else:
        with pytest.raises(ValueError, match=re.escape(message)):
            worker.variant(workload, variant)(parameters)


def test_latencies() -> None:
    found = commands.latencies([number / 1000 for number in range(1, 102)])
    assert found == {"p50_ms": pytest.approx(51), "p90_ms": pytest.approx(91)}


def test_the_heap_is_touched() -> None:
    heap = commands.occupy(3 * 4096 + 1)
    assert len(heap) == 3 * 4096 + 1
    assert [heap[page * 4096] for page in range(4)] == [1, 1, 1, 1]


def test_a_watcher_sees_an_exit(run_python: Callable[..., Any]) -> None:
    run_python(
        """
        import subprocess
        import time

        from benchmarks.suites.commands.workload import Watcher

        watcher = Watcher()
        for _ in range(2):
            with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
                watcher.watch(child.pid)
                before = time.monotonic()
            assert before < watcher.exit_time() < time.monotonic()
        watcher.close()
        """
    )


def test_how_many_children() -> None:
    assert communicate.children({"size": 1000}) == 1
    assert communicate.children({"size": 1000, "total": 999}) == 1
    assert communicate.children({"size": 1000, "total": 7999}) == 7
    assert communicate.children({"size": 1000, "total": 10**9}) == communicate.MOST_CHILDREN


def test_percentile() -> None:
    assert worker.percentile([3, 1, 2, 4], 0.5) == 2
    assert worker.percentile(list(range(1, 201)), 0.99) == 198
    assert worker.percentile([7], 0.99) == 7


def test_a_long_stop_counts_by_its_length() -> None:
    """One stop of 1 s in 10 s: one request in ten comes in it, one in a hundred in its first tenth."""
    late = [0.0] * 8_999 + [1.0]
    assert worker.percentile(late, 0.99) == 0
    assert fairness.arrival_percentile(late, 10, 0.99) == pytest.approx(0.9)
    figures = fairness.lateness(late, 0.001)
    assert figures["worst_ms"] == pytest.approx(1000)
    assert figures["arrival_p99_ms"] == pytest.approx(900, rel=0.001)
    assert figures["heartbeats"] == 9000


def cell(chunk: int, pipe: int, turn: int, mb_s: float, p99: float) -> sweep.Cell:
    return sweep.Cell(chunk, pipe, turn, mb_s, mb_s, mb_s, p99)


def test_the_smallest_good_settings_are_recommended() -> None:
    cells = [
        cell(1024, 1024, 1024, 1000, 5),
        cell(512, 1024, 1024, 980, 5),
        cell(256, 1024, 1024, 960, 5),  # too slow
        cell(512, 1024, 512, 975, 5),
        cell(1024, 512, 4096, 971, 9),  # the smallest pipe that will do
        cell(64, 512, 512, 2000, 11),  # unfair
    ]
    assert sweep.recommend(cells) == cells[4]
    assert sweep.recommend(cells[:4]) == cells[3]
    assert sweep.recommend(cells, within=0.01) == cells[0]
    assert sweep.recommend(cells, p99_ms=20) == cells[5]


def test_no_settings_are_fair_enough() -> None:
    with pytest.raises(ValueError, match="10.0 ms"):
        sweep.recommend([cell(64, 64, 64, 1000, 11)])


def test_one_number_for_three_throughputs() -> None:
    assert sweep.Cell(1, 1, 1, 100, 1000, 10, 1).mb_s == pytest.approx(100)


def test_the_sweep_recommends_of_what_had_the_right_data() -> None:
    results = pytest.importorskip("benchmarks.harness.results")
    case = results.CaseResult("grid", "", "sweep", {}, "a", "MB/s", "seconds", [], 0)
    for title, chunk, seconds, verified in (("a", 64, 2.0, True), ("b", 128, 1.0, True), ("c", 32, 0.5, False)):
        parameters = {"chunk_size": chunk * KIB, "pipe_size": 1 << 20, "yield_bytes": 1 << 20}
        row = results.VariantResult(title, [], parameters, 1, 1)
        figures = {"input_mb_s": 100.0, "together_mb_s": 100.0, "p99_ms": 3.0}
        run = {"round": 0, "warmup": False, "verified": verified, "bytes": 200_000_000, "seconds": seconds, **figures}
        row.runs.append(run)
        case.variants[title] = row
    result = results.Result("sweep", {}, {}, cases=[case])
    table = sweep.table(result)
    assert [line[:2] for line in table.rows] == [["128 KiB / 1 MiB / 1 MiB", "200"], ["64 KiB / 1 MiB / 1 MiB", "100"]]
    assert table.notes[0].endswith("keep p99 at 10 ms: 128 KiB / 1 MiB / 1 MiB")
    for row in case.variants.values():
        row.runs[0]["p99_ms"] = 11.0
    assert "at 10.0 ms or less" in sweep.table(result).notes[0]


def test_a_reference_whose_command_fails_is_no_result() -> None:
    assert read_all(["echo", "all"], 1 << 16) == b"all\n"
    with pytest.raises(subprocess.CalledProcessError):
        read_all(["sh", "-c", "echo part; exit 3"], 1 << 16)
