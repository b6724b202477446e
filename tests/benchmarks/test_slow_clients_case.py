"""The benchmark of slow clients: with little data, what its clients notice, and what is asked of the figures."""

import dataclasses
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("psutil", reason="suites need the extra 'bench'")
pytest.importorskip("scipy", reason="tables need the extra 'bench'")

import fastio
from benchmarks.backends.base import HOST
from benchmarks.harness import results
from benchmarks.harness.engine import Case, Options
from benchmarks.harness.other_requests import Requests
from benchmarks.suites.glance.bench_glance import ELSEWHERE
from benchmarks.suites.slow_clients import bench_slow_clients, readers, tables
from benchmarks.suites.slow_clients.readers import Clients, Plan
from tests.benchmarks import samples
from tests.benchmarks.running import measured, needs
from tests.conftest import with_services
from tests.eventually import until

#: Divides nothing.
CONTENT = os.urandom(1_300_001)


@with_services
@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("case", bench_slow_clients.CASES, ids=lambda case: case.name)
def test_through_the_real_servers(case: Case) -> None:
    needs("glance-33", "http")
    found = measured(dataclasses.replace(case, rounds=1), Options(quick=True))
    assert list(found.variants) == ["stock", "fastio", "reference-nginx"]
    for row in found.variants.values():
        (one,) = row.runs
        assert one["bytes"] > 0 and 1 <= one["served"] <= 5 and one["transfers"] >= 1 and one["requests"] >= 1
        assert 0 < one["p50_ms"] <= one["p99_ms"] <= one["worst_ms"] and one["server_cpu_seconds"] >= 0
    assert found.backend["fastio"].endswith("fastio=on also=glance_slow_clients")


# --- the clients


class Server:
    """Answers each request with what it is told to, and knows who has asked."""

    def __init__(self) -> None:
        self.body = CONTENT
        self.length = len(CONTENT)
        self.status = 200
        #: addresses and ports of the clients
        self.seen: list[tuple[str, int]] = []
        self.port = 0

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.seen.append(request.client_address)
        request.send_response(self.status)
        request.send_header("Content-Length", str(self.length))
        request.end_headers()
        request.wfile.write(self.body)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.answer(self)

        def log_message(self, *_: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """The clients are cut off."""

    with Quiet((HOST, 0), Handler) as running:
        made.port = running.server_address[1]
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield made
        running.shutdown()
        thread.join()


@pytest.fixture
def plan(server: Server, tmp_path: Path) -> Plan:
    file = tmp_path / "image"
    file.write_bytes(CONTENT)
    return Plan(server.port, "/image", str(file), clients=3, rate=1e9, ramp=0)


def test_clients_read_one_image_after_the_other(server: Server, plan: Plan) -> None:
    with Clients(dataclasses.replace(plan, source=ELSEWHERE)) as clients:
        clients.wait()
        # A client asks again when a download has ended.
        count = len(server.seen)
        until(lambda: len(server.seen) > count + 2 * plan.clients, "further downloads")
        figures = clients.stop()
    assert {address for address, _ in server.seen} == {ELSEWHERE}
    assert 2 <= figures["ended"] <= len(server.seen)
    assert figures["bytes"] >= (figures["ended"] - plan.clients) * len(CONTENT)
    assert 1 <= figures["served"] <= plan.clients


def test_clients_keep_to_their_rate(plan: Plan) -> None:
    """With a byte a second, the first piece is all that they read for the next hours."""
    with Clients(dataclasses.replace(plan, rate=1)) as clients:
        # If they read on, they do so now.
        time.sleep(0.3)
        figures = clients.stop()
    assert figures["bytes"] <= plan.clients * readers.PIECE < len(CONTENT)
    assert figures["ended"] == 0


def _another_byte(server: Server) -> None:
    server.body = CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])


def _less(server: Server) -> None:
    server.body = CONTENT[:-1]


def _another_length(server: Server) -> None:
    server.length -= 1


def _an_error(server: Server) -> None:
    server.status = 503


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (_another_byte, "other bytes than those of the image"),
        (_less, "a body ended after 1300000 of 1300001 bytes"),
        (_another_length, "an answer began with"),
        (_an_error, "an answer began with"),
    ],
)
def test_what_is_wrong_is_noticed(
    server: Server, plan: Plan, damage: Callable[[Server], None], named: str, capfd: pytest.CaptureFixture[str]
) -> None:
    damage(server)
    with pytest.raises(RuntimeError, match="a slow client failed"), Clients(plan) as clients:
        clients.wait()
    assert named in capfd.readouterr().err


def test_what_is_wrong_later_is_noticed(server: Server, plan: Plan) -> None:
    with Clients(plan) as clients:
        clients.wait()
        _another_byte(server)
        count = len(server.seen)
        # Each client has had the other content, so at least one has failed and ended the process.
        until(lambda: len(server.seen) > count + plan.clients or clients._process.poll() is not None, "its end")
        until(lambda: clients._process.poll() is not None, "the end of the process")
        with pytest.raises(RuntimeError, match="a slow client failed"):
            clients.stop()


def test_nobody_is_there(plan: Plan) -> None:
    with socket.socket() as sock:
        sock.bind((HOST, 0))
        with pytest.raises(RuntimeError, match="a slow client failed"):
            Clients(dataclasses.replace(plan, port=sock.getsockname()[1])).__enter__()


def test_other_requests_begin_when_they_are_told_to(server: Server) -> None:
    with Requests(server.port, "/", at_once=False) as requests:
        # The one by which it knows that there is a server.
        assert len(server.seen) == 1
        requests.begin()
        until(lambda: len(server.seen) > 1, "the requests")
        assert requests.stop()["requests"] == len(server.seen) - 1


# --- what is asked


def row(rate: float, p99: float) -> results.VariantResult:
    """A row with so many MB/s."""
    made = samples.variant([1.0] * 3)
    for run in made.runs:
        run.update(bytes=int(rate * 1e6), p99_ms=p99)
    return made


def test_what_is_asked() -> None:
    four = {"stock": row(80, 5000), "fastio": row(77, 50.1)}
    many = {"stock": row(4, 9000), "fastio": row(189, 150)}
    names = {clients: bench_slow_clients.name(clients) for clients in bench_slow_clients.LOADS}
    made = samples.result(samples.case(four, name=names[4]), samples.case(many, name=names[200]))
    (table,) = tables.judgement(made)
    assert [line[0] for line in table.rows] == [
        "other requests during 4 slow downloads, p99 ms", "4 slow downloads, MB/s",
        "other requests during 200 slow downloads, p99 ms", "200 slow downloads, MB/s",
    ]  # fmt: skip
    assert [line[3] for line in table.rows][:3] == ["≤ 50 ms", "≥ 0.95 of what they ask for", "≤ 150 ms"]
    assert [line[-1] for line in table.rows] == ["no", "yes", "yes", "no"]
    assert table.rows[1][4].startswith("0.963 ")
    (fewer,) = tables.judgement(samples.result(samples.case(four, name=names[4])))
    assert fewer.rows == table.rows[:2]


def test_the_service_is_the_one_that_is_shipped() -> None:
    for case in bench_slow_clients.CASES:
        name, parameters = case.beside["fastio"]
        own = {**case.backend_parameters, "fastio": "on", "also": bench_slow_clients.SLOW_CLIENTS}
        assert (name, parameters) == (case.backend, own) and (own["workers"], own["threads"]) == (4, 1)
    assert bench_slow_clients.SLOW_CLIENTS in fastio.names()
