"""The benchmark of tracing with few events, and what is said of its figures."""

import dataclasses
import http.server
import json
import os
import pathlib
import threading
from typing import Any, ClassVar

import pytest

pytest.importorskip("psutil", reason="suites need the extra 'bench'")
pytest.importorskip("scipy", reason="tables need the extra 'bench'")

from benchmarks.backends.base import HOST
from benchmarks.harness.results import VariantResult
from benchmarks.harness.tables import EMPTY
from benchmarks.harness.worker import SURROUNDINGS_VARIABLE
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
    for case in [case for case in bench_trace.CASES if case.name.endswith("-downloads")]:
        titles = [variant.title for variant in case.all_variants()]
        assert titles == list(bench_trace.SERVERS)
        for variant in case.all_variants():
            assert variant.against in titles
            assert "traced" not in variant.against
            server = variant.parameters["server"]
            assert not server or case.beside[server] == (case.backend, bench_trace.SERVERS[variant.title])


def test_pairs_are_of_a_server_and_the_same_one_with_a_trace() -> None:
    found = [case for case in bench_trace.CASES if case.name.endswith("-pairs")]
    assert len(found) == 2
    for case in found:
        for variant in case.all_variants():
            traced, untraced = (variant.parameters[name] for name in ("server", "without"))
            chosen = case.beside[untraced][1] if untraced else {}
            assert case.beside[traced] == (case.backend, {**chosen, "trace": "on"})


class _Server(http.server.BaseHTTPRequestHandler):
    content = b"x" * 1000
    #: the ports that were asked
    log: ClassVar[list[Any]] = []

    def do_GET(self) -> None:
        self.log.append(self.connection.getsockname()[1])
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()
        self.wfile.write(self.content)

    def log_message(self, *_: object) -> None:
        pass


def test_the_downloads_of_a_pair_are_made_in_turn(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setattr(trace, "PAUSE", 0.0)
    monkeypatch.setattr(trace, "_is_right", lambda parameters: True)
    monkeypatch.setattr(_Server, "log", [])
    servers = [http.server.ThreadingHTTPServer((HOST, 0), _Server) for _ in range(2)]
    for each in servers:
        threading.Thread(target=each.serve_forever, daemon=True).start()
    try:
        plain, traced = (
            {"access": {"backend": "glance", "url": f"http://{HOST}:{each.server_port}", "images": str(tmp_path)},
             "pids": [os.getpid()]}
            for each in servers
        )  # fmt: skip
        told = {**plain, "beside": {"traced": traced}, "prepared": {"images": {"": "a", "traced": "b"}, "failed": {}}}
        monkeypatch.setenv(SURROUNDINGS_VARIABLE, json.dumps(told))
        found = trace.pairs({"server": "traced", "without": "", "pairs": 3, "size": 1000, "seconds": 0})
    finally:
        for each in servers:
            each.shutdown()
            each.server_close()
    first, second = (each.server_port for each in servers)
    # One of each before it counts.
    assert _Server.log == [second, first, first, second, second, first, first, second]
    assert (found["verified"], found["downloads"], found["bytes"]) == (True, 6, 6000)
    assert found["times"] > 0


def pairs(*times: float) -> VariantResult:
    row = samples.variant([1.0] * len(times))
    for run, each in zip(row.measured(), times, strict=True):
        run["times"] = each
    return row


NARROW = [1.0 + number / 10_000 for number in range(-10, 11)]


def test_rounds_go_on_until_the_interval_is_narrow() -> None:
    def sure(**rows: VariantResult) -> bool:
        return tables.sure(samples.case(rows, name="pairs", unit="x", value="times"))

    assert sure(stock=pairs(*NARROW))
    assert not sure(stock=pairs(*NARROW[:6]))
    assert not sure(stock=pairs(*NARROW), fastio=pairs(*(1.0 + number / 100 for number in range(-10, 11))))
    failed = pairs()
    failed.failure = {"reason": "no server"}
    assert sure(stock=pairs(*NARROW), fastio=failed)


def test_pairs_decide() -> None:
    rows = {
        "same": pairs(*NARROW),
        "slower": pairs(*(1.02 + each - 1 for each in NARROW)),
        "unclear": pairs(0.9, 1.1, 1.0, 0.8, 1.2),
    }
    (table,) = tables.judgement(samples.result(samples.case(rows, name="g", unit="x", value="times")))
    assert [(row[0], row[-1]) for row in table.rows] == [
        ("g: same, traced", "yes"), ("g: slower, traced", "no"), ("g: unclear, traced", EMPTY),
    ]  # fmt: skip
    assert table.rows[0][2].startswith("1.0000 (0.99")


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
