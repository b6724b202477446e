"""The suite that looks for losses: when a cell is decided, what its table says, and small runs of its operations."""

import contextlib
import dataclasses
import http.server
import io
import itertools
import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from benchmarks.harness import results, worker
from benchmarks.harness.engine import Case, Options
from benchmarks.harness.modes import MODES
from benchmarks.harness.statistics import Interval, paired_ratio
from benchmarks.operations import servers, services
from benchmarks.operations.base import Work
from benchmarks.suites.never_slower import bench_never_slower, pairs, peer, tables, workload
from benchmarks.suites.never_slower.pairs import Budget, Cell
from tests.benchmarks import samples
from tests.benchmarks.running import measured
from tests.conftest import needs_eventlet, needs_oslo, with_services

pytestmark = with_services

KIB, MIB = 1 << 10, 1 << 20
CASES = {case.name: case for case in bench_never_slower.CASES}
SERVICES = [name for name in CASES if name.startswith("glance-3")]
PARAMETERS = {"size": 64 * MIB, "busy": 2, "many": 20}
ONE = [Cell(KIB, 1, 0, False)]
#: Long enough that only the figures end a cell.
EVER = 1e9


# --- the intervals


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [(1, 1, 1), (5, 1, 5), (6, 1, 6), (8, 1, 8), (9, 2, 8), (12, 3, 10), (20, 6, 15), (60, 22, 39)],
)
def test_the_interval_is_that_of_the_binomial_distribution(count: int, low: int, high: int) -> None:
    """Tables of the confidence interval of a median have these ranks."""
    ratios = [float(each) for each in range(1, count + 1)]
    found = paired_ratio(ratios[::-1], [1.0] * count)
    assert found == Interval((count + 1) / 2, low, high)


def test_unpaired_figures_are_refused() -> None:
    with pytest.raises(ValueError, match="no pair"):
        paired_ratio([], [])
    with pytest.raises(ValueError, match="zip"):
        paired_ratio([1.0, 2.0], [1.0])


# --- what is measured


def test_every_cell_of_the_requirement_is_there() -> None:
    found = pairs.cells(PARAMETERS)
    assert {cell[:3] for cell in found} == {
        *itertools.product((KIB, 64 * KIB), (1, 20), (0, 2)), (64 * MIB, 1, 0), (64 * MIB, 1, 2),
        (4 * MIB, 20, 0), (4 * MIB, 20, 2),
    }  # fmt: skip
    assert [cell.busy for cell in found] == [0] * 6 + [2] * 6, "the others would come and go"
    assert [cell.large for cell in found] == [cell.size > MIB for cell in found]
    assert pairs.sizes(PARAMETERS) == [KIB, 64 * KIB, 4 * MIB, 64 * MIB]
    assert len(pairs.cells({**PARAMETERS, "busy": 0})) == 6


class Fake:
    """A side whose calls take these times, one batch after the other; the last one for ever."""

    def __init__(self, log: list[str], name: str, times: Sequence[float], right: bool = True) -> None:
        self._log, self._name, self._right = log, name, right
        self._times = itertools.chain(times, itertools.repeat(times[-1]))

    def batch(self, size: int, at_once: int, calls: int) -> float:
        self._log.append(self._name)
        return next(self._times) * calls

    def check(self, size: int, at_once: int) -> bool:
        return self._right


class Fakes:
    """Starts sides: ``fastio`` of each start has the next of these times, ``stock`` always takes a second."""

    def __init__(self, *fastio: Sequence[float], right: bool = True) -> None:
        self.log: list[str] = []
        self._left = list(fastio)
        self._right = right

    @contextlib.contextmanager
    def __call__(self) -> Iterator[pairs.Sides]:
        self.log.append("start")
        fast = self._left.pop(0)
        yield {"stock": Fake(self.log, "stock", [1.0]), "fastio": Fake(self.log, "fastio", fast, self._right)}


def in_turn(*seconds: float) -> list[float]:
    """The durations of calls, in turn."""
    return list(itertools.islice(itertools.cycle(seconds), 200))


@pytest.mark.parametrize(
    ("fastio", "budget", "parts", "verdict", "times"),
    [
        # A faster side is decided by few pairs; the first of each is not measured.
        ([[1.0, 0.5]], Budget(EVER, 6), [6], pairs.NOT_SLOWER, Interval(2, 2, 2)),
        # A loss of less than a percent is as well.
        ([in_turn(1.005, 0.999)], Budget(EVER, 6), [6], pairs.NOT_SLOWER, Interval(0.998, 0.995, 1.001)),
        # An undecided cell goes on up to the most pairs.
        ([in_turn(0.5, 2.0)], Budget(EVER, 6), [60], pairs.NOT_SLOWER, Interval(1.25, 0.5, 2)),
        # A slower side is measured again by new processes, and is chance if it is slower once only.
        ([[2.0], [4.0]], Budget(0, 6), [6, 6], pairs.SLOWER, Interval(0.375, 0.25, 0.5)),
        ([[2.0], [1.0]], Budget(0, 6), [6, 6], pairs.NOT_SLOWER, Interval(0.75, 0.5, 1)),
        ([[2.0]], Budget(0, 1), [1], pairs.UNDECIDED, Interval(0.5, 0.5, 0.5)),
    ],
)
def test_when_a_cell_is_decided(
    fastio: list[list[float]], budget: Budget, parts: list[int], verdict: str, times: Interval
) -> None:
    fakes = Fakes(*fastio)
    ((found,), right) = pairs.measure(fakes, ONE, budget)
    assert right and fakes.log.count("start") == len(parts)
    assert [len(each["stock"]) for each in (found, *found.get("again", []))] == parts
    assert {name: found[name] for name in (*Cell._fields, "calls")} == {**ONE[0]._asdict(), "calls": 1}
    assert pairs.verdict(found) == verdict
    assert pairs.interval(found) == pytest.approx(times, abs=5e-4)
    # The sides alternate in being first.
    assert fakes.log[3:5] == ["stock", "fastio"] and fakes.log[5:7] in ([], ["start", "stock"], ["fastio", "stock"])


def test_short_calls_come_in_batches() -> None:
    class Short(Fakes):
        @contextlib.contextmanager
        def __call__(self) -> Iterator[pairs.Sides]:
            yield {name: Fake([], name, [0.0001]) for name in ("stock", "fastio")}

    ((found,), _) = pairs.measure(Short(), ONE, Budget(EVER, 6))
    assert found["calls"] == 300


def test_wrong_bytes_are_reported() -> None:
    _, right = pairs.measure(Fakes([0.5], right=False), ONE, Budget(0, 6))
    assert not right


# --- a process of a pair


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(
    ("wrong", "message"),
    [("", ""), ("missing", "99 bytes came of 100"), ("hash", "")],
    ids=["right", "missing", "hash"],
)
def test_a_process_checks_the_bytes(wrong: str, message: str) -> None:
    class Sleeping(Work):
        def once(self, size: int) -> int:
            return size - (wrong == "missing")

        def sha256(self, size: int) -> str:
            return "other" if wrong == "hash" else worker.random_payload(size).sha256

    asked = [{"size": 100, "at_once": 1, "calls": 0}, {"size": 100, "at_once": 1, "calls": 1}]
    said: list[dict[str, Any]] = []
    with pytest.raises(RuntimeError, match=message) if message else contextlib.nullcontext():
        peer.serve(Sleeping(), False, io.StringIO("".join(json.dumps(each) + "\n" for each in asked)), said.append)
    assert said[0] == {"verified": wrong != "hash"}
    assert message or said[1]["seconds"] >= 0


@pytest.mark.parametrize("green", [False, pytest.param(True, marks=needs_eventlet)])
def test_many_call_at_once(green: bool, run_python: Callable[..., Any]) -> None:
    run_python(
        """
        import sys

        if sys.argv[1] == "True":
            import eventlet

            eventlet.monkey_patch()
        import threading

        from benchmarks.operations.base import Crowd

        crowd, all_of_them = Crowd(sys.argv[1] == "True"), threading.Barrier(20)
        # None passes before all are there.
        assert sorted(crowd.each(lambda: all_of_them.wait(60), 20)) == list(range(20))
        assert crowd.each(lambda: 7, 1) == [7]
        """,
        str(green),
    )


def test_a_process_that_ends_is_an_error() -> None:
    told = {"operation": "nothing", "green": False, "fast": False}
    message = "nothing stock: it ended without an answer"
    with pytest.raises(RuntimeError, match=message), peer.Peer(told) as process:
        process.ready()


# --- downloads with and without a trace


@pytest.mark.usefixtures("cache")
def test_a_side_asks_not_to_be_recorded_once_more_than_is_measured() -> None:
    """And a server for clients knows the payloads by their sizes."""
    seen, size = [], 100

    class Handler(servers.Plain):
        def do_GET(self) -> None:
            seen.append(self.headers["X-Trace"])
            super().do_GET()

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever).start()
        told = {"places": {str(size): f"http://127.0.0.1:{running.server_port}/{size}/file"}}
        asked = [{"size": size, "at_once": 1, "calls": 2, "side": side} for side in workload.TRACED]
        try:
            with services.download(MODES["native-stock"], {**told, "headers": workload.TRACED}) as work:
                peer.serve(work, False, map(json.dumps, asked), lambda said: None)
        finally:
            running.shutdown()
    assert seen == ["off"] * 3 + [None] * 3


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one processor")
def test_client_and_server_are_apart() -> None:
    before = os.sched_getaffinity(0)
    with subprocess.Popen(["sleep", "60"]) as child:
        with workload._apart([child.pid]):
            client, server = os.sched_getaffinity(0), os.sched_getaffinity(child.pid)
        child.kill()
    assert (len(client), len(server), client & server) == (1, 1, set())
    assert os.sched_getaffinity(0) == before


# --- what the table says


def cell(stock: Sequence[float], fastio: Sequence[float], again: bool = False, **fields: Any) -> dict[str, Any]:
    sides = {"stock": list(stock), "fastio": list(fastio)}
    more = {"again": [{"calls": 1, **sides}]} if again else {}
    return {"size": KIB, "at_once": 1, "busy": 0, "large": False, "calls": 1, **sides, **more, **fields}


def result_of(**cases: Sequence[dict[str, Any]]) -> results.Result:
    made = []
    for name, cells in cases.items():
        row = samples.variant([1.0], name="pairs")
        for run in row.runs:
            run |= {"slower": 0, "pairs": list(cells)}
        made.append(samples.case({"pairs": row}, name=name, unit="slower", value="slower"))
    return samples.result(*made, suite="never_slower")


def test_losses_are_on_top_with_their_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "REASONS", {"third, large*": "it is fair to others", "[ft]*": "never asked"})
    spread = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0]
    found = result_of(
        first=[cell(spread, [0.5] * 6), cell(spread, spread[::-1], at_once=20)],
        second=[cell(spread, [1.25] * 6, True, busy=2)],
        third=[cell(spread, [2.0] * 6, True, size=MIB, large=True), cell([1.0], [2.0], busy=2)],
    )
    (table,) = tables.judgement(found)
    assert table.head == ["", "1 KiB", "large", "verdict", "why it is the default all the same"]
    assert table.rows == [
        ["third", "0.5 (0.5–0.5)", "0.5 (0.495–0.505)",
         "1 of 2 cells slower; large, 1 concurrent, idle: by 50 % (49.5–50.5)", "it is fair to others"],
        ["second", "0.8 (0.792–0.808)", "–",
         "1 of 1 cells slower; 1 KiB, 1 concurrent, busy: by 20 % (19.2–20.8)", "–"],
        ["first", "1 (0.97–1.03)", "–", "not slower", ""],
    ]  # fmt: skip
    assert table.notes == [
        "of 5 cells 2 are not slower, of which 1 are faster; 2 are slower; 1 have too few pairs",
        "large data: 1 MiB a call",
    ]


def test_a_person_can_read_the_table() -> None:
    assert len(CASES) <= 60


# --- small runs


def test_several_runs_count_together() -> None:
    """And what is slower in one of them only is not."""
    found = result_of(first=[cell([1.0] * 6, [2.0] * 6, True)])
    row = found.cases[0].variants["pairs"]
    row.runs.append({**row.runs[-1], "pairs": [cell([1.0] * 6, [0.5] * 6)]})
    (compared,) = tables.compared(found.cases)
    assert compared.times.ratio == 0.5 and compared.verdict == pairs.NOT_SLOWER
    row.runs[-1]["pairs"] = [cell([1.0] * 6, [4.0] * 6)]
    (compared,) = tables.compared(found.cases)
    assert compared.verdict == pairs.SLOWER and len(compared.record["again"]) == 2


def quick(case: Case) -> None:
    missing = case.why_not() or "".join(variant.skip for variant in case.all_variants())
    if missing:
        pytest.skip(missing)
    (run,) = measured(case, Options(quick=True)).variants["pairs"].runs
    assert run["verified"] and run["cells"] == 6
    assert [len(each["stock"]) for each in run["pairs"]] == [1] * 6
    assert {each["at_once"] for each in run["pairs"]} == {1, 3}


@needs_eventlet
@needs_oslo
@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("name", [name for name in CASES if name not in SERVICES])
def test_every_operation(name: str) -> None:
    pytest.importorskip("glance_store", reason="takes minutes: tox -e bench -- never_slower --quick runs it")
    quick(CASES[name])


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("name", SERVICES)
def test_a_service(name: str) -> None:
    """One worker is enough here: each imports all of glance."""
    case, one = CASES[name], {"workers": 1}
    beside = {title: (backend, {**own, **one}) for title, (backend, own) in case.beside.items()}
    parameters = {**case.parameters, "server": {**case.parameters.get("server", {}), **one}}
    own = {**case.backend_parameters, **one} if case.backend else {}
    quick(dataclasses.replace(case, parameters=parameters, beside=beside, backend_parameters=own))
