"""The benchmark of tracing with few events, and what is said of its figures."""

import dataclasses

import pytest

pytest.importorskip("psutil", reason="suites need the extra 'bench'")
pytest.importorskip("scipy", reason="tables need the extra 'bench'")

from benchmarks.harness.results import VariantResult
from benchmarks.harness.tables import EMPTY
from benchmarks.suites.trace import bench_trace, tables
from benchmarks.suites.trace import workload as trace
from tests.benchmarks import samples
from tests.benchmarks.running import measured

EVENTS = bench_trace.CASES[0]


def test_the_events() -> None:
    pytest.importorskip("eventlet")
    case = dataclasses.replace(EVENTS, parameters={"count": 50}, warmup=0, rounds=1)
    case = dataclasses.replace(
        case,
        variants=["spans", "points", "requests", "chunks-traced", "waits", "waits-traced"],
        baseline="spans",
    )
    for row in measured(case).variants.values():
        assert row.measured()[0]["event_us"] > 0


def test_events_that_are_lost_are_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastio.trace import recorder

    start = recorder.start
    monkeypatch.setattr(recorder, "start", lambda directory, limits: start(directory, limits._replace(buffer=10)))
    with pytest.raises(trace.LostEvents):
        trace.points({"count": 5000})
    assert recorder.active is None


def test_each_traced_server_is_compared_with_its_untraced_one() -> None:
    for case in bench_trace.CASES[1:]:
        titles = [variant.title for variant in case.all_variants()]
        assert titles == list(bench_trace.SERVERS)
        for variant in case.all_variants():
            assert variant.against in titles
            assert "traced" not in variant.against
            server = variant.parameters["server"]
            assert not server or case.beside[server] == (case.backend, bench_trace.SERVERS[variant.title])


def test_what_may_be_and_what_is() -> None:
    def events(figure: float) -> VariantResult:
        row = samples.variant([1.0] * 5)
        for run in row.runs:
            run["event_us"] = figure
        return row

    rows = {"spans": events(2.9), "points": events(3.1), "chunks": events(9.0)}
    costs = samples.case(rows, name="events", unit="us", value="event_us")
    steady, slower = [1.0, 1.001, 0.999, 1.0, 1.0], [1.05, 1.051, 1.049, 1.05, 1.05]
    noisy = [0.9, 1.1, 1.0, 0.8, 1.2]
    downloads = [
        samples.case(
            {"stock": samples.variant(steady), "stock, traced": samples.variant(traced, against="stock")}, name=name
        )
        for name, traced in (("same", steady), ("slower", slower), ("unclear", noisy))
    ]
    (table,) = tables.judgement(samples.result(costs, *downloads))
    assert [(row[0], row[-1]) for row in table.rows] == [
        ("us of an event: spans", "yes"), ("us of an event: points", "no"), ("same: stock, traced", "yes"),
        ("slower: stock, traced", "no"), ("unclear: stock, traced", EMPTY),
    ]  # fmt: skip
