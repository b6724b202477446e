"""The benchmark of slow clients: with little data, what its clients notice, and what is asked of the figures."""

import dataclasses
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psutil", reason="suites need the extra 'bench'")
pytest.importorskip("scipy", reason="tables need the extra 'bench'")

import fastio
from benchmarks.backends.base import HOST
from benchmarks.harness import results
from benchmarks.harness.engine import Case, Options
from benchmarks.harness.other_requests import Requests
from benchmarks.harness.slow_clients import clients, writers
from benchmarks.harness.slow_clients.clients import Clients, Plan
from benchmarks.suites.glance.bench_glance import ELSEWHERE
from benchmarks.suites.slow_clients import bench_slow_clients, tables
from benchmarks.suites.slow_clients.workload import Temporary
from fastio.tables import EMPTY
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
    uploads = case.parameters["task"] == "upload"
    rows = ["fastio", *(["stock, post-buffering", "stock, nginx"] if uploads else ["reference-nginx"])]
    assert list(found.variants) == ["stock", *rows]
    for row in found.variants.values():
        (one,) = row.runs
        assert one["bytes"] > 0 and 1 <= one["served"] <= 5 and one["transfers"] >= 1 and one["requests"] >= 1
        assert 0 < one["p50_ms"] <= one["p99_ms"] <= one["worst_ms"] and one["server_cpu_seconds"] >= 0
        assert ("temporary_mb" in one) == uploads
    if uploads:
        # Nothing but a file of uWSGI or nginx is counted.
        assert [found.median(row, "temporary_mb") for row in ("stock", "fastio")] == [0, 0]
        assert found.backend["post-buffering"].endswith("post_buffering=1048576")
        assert found.backend["proxied"].endswith("proxied=1")
    else:
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
        #: paths of uploads -> what has come
        self.taken: dict[str, bytes] = {}
        #: headers of the last upload
        self.told: dict[str, str] = {}
        self.port = 0

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.seen.append(request.client_address)
        request.send_response(self.status)
        request.send_header("Content-Length", str(self.length))
        request.end_headers()
        request.wfile.write(self.body)

    def take(self, request: BaseHTTPRequestHandler) -> None:
        self.seen.append(request.client_address)
        self.told = dict(request.headers)
        if "Content-Length" in request.headers:
            body = request.rfile.read(int(request.headers["Content-Length"]))
        else:
            body = b"".join(iter(lambda: _chunk(request.rfile), b""))
        assert request.path not in self.taken
        self.taken[request.path] = body
        request.send_response(204 if self.status == 200 else self.status)
        request.end_headers()


def _chunk(body: Any) -> bytes:
    """The next chunk, empty at the end."""
    chunk: bytes = body.read(int(body.readline(), 16))
    assert body.readline() == b"\r\n"
    return chunk


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.answer(self)

        def do_PUT(self) -> None:
            made.take(self)

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
    with Clients(dataclasses.replace(plan, source=ELSEWHERE)) as running:
        running.wait()
        # A client asks again when a download has ended.
        count = len(server.seen)
        until(lambda: len(server.seen) > count + 2 * plan.clients, "further downloads")
        figures = running.stop()
    assert {address for address, _ in server.seen} == {ELSEWHERE}
    assert 2 <= figures["ended"] <= len(server.seen)
    assert figures["bytes"] >= (figures["ended"] - plan.clients) * len(CONTENT)
    assert 1 <= figures["served"] <= plan.clients


def test_clients_keep_to_their_rate(plan: Plan) -> None:
    """With a byte a second, the first piece is all that they read for the next hours."""
    with Clients(dataclasses.replace(plan, rate=1)) as running:
        # If they read on, they do so now.
        time.sleep(0.3)
        figures = running.stop()
    assert figures["bytes"] <= plan.clients * clients.PIECE < len(CONTENT)
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
    with pytest.raises(RuntimeError, match="a slow client failed"), Clients(plan) as running:
        running.wait()
    assert named in capfd.readouterr().err


def test_what_is_wrong_later_is_noticed(server: Server, plan: Plan) -> None:
    with Clients(plan) as running:
        running.wait()
        _another_byte(server)
        count = len(server.seen)
        # Each client has had the other content, so at least one has failed and ended the process.
        until(lambda: len(server.seen) > count + plan.clients or running._process.poll() is not None, "its end")
        until(lambda: running._process.poll() is not None, "the end of the process")
        with pytest.raises(RuntimeError, match="a slow client failed"):
            running.stop()


def test_nobody_is_there(plan: Plan) -> None:
    with socket.socket() as sock:
        sock.bind((HOST, 0))
        with pytest.raises(RuntimeError, match="a slow client failed"):
            Clients(dataclasses.replace(plan, port=sock.getsockname()[1])).__enter__()


@pytest.fixture
def uploads(plan: Plan) -> writers.Plan:
    images = [f"image-{number}" for number in range(7)]
    return writers.Plan(**{**dataclasses.asdict(plan), "path": "/v2/{}/file"}, images=images)


@pytest.mark.parametrize("chunked", [False, True], ids=["with its length", "chunked"])
def test_clients_upload_one_image_after_the_other(server: Server, uploads: writers.Plan, chunked: bool) -> None:
    plan = dataclasses.replace(uploads, chunked=chunked, source=ELSEWHERE)
    with Clients(plan) as running:
        running.wait()
        # When there is none left, the clients wait for the end.
        until(lambda: len(server.taken) == len(plan.images), "all uploads")
        figures = running.stop()
    assert server.taken == {f"/v2/{image}/file": CONTENT for image in plan.images}
    assert server.told.get("Transfer-Encoding") == ("chunked" if chunked else None)
    assert server.told.get("Content-Length") == (None if chunked else str(len(CONTENT)))
    assert {address for address, _ in server.seen} == {ELSEWHERE}
    # The answers of those that came last may not have.
    assert set(figures["complete"]) <= set(plan.images)
    assert len(plan.images) - plan.clients <= len(figures["complete"]) and figures["ended"] >= 1
    assert figures["bytes"] <= len(CONTENT) * len(plan.images) and figures["served"] <= plan.clients


def test_uploads_keep_to_their_rate(server: Server, uploads: writers.Plan) -> None:
    with Clients(dataclasses.replace(uploads, rate=1)) as running:
        time.sleep(0.3)
        figures = running.stop()
    assert figures["bytes"] <= uploads.clients * clients.PIECE and figures["complete"] == []


def test_an_upload_that_is_refused_is_noticed(
    server: Server, uploads: writers.Plan, capfd: pytest.CaptureFixture[str]
) -> None:
    server.status = 410
    with pytest.raises(RuntimeError, match="a slow client failed"), Clients(uploads) as running:
        running.wait()
    assert "the answer to an upload began with b'HTTP/1.0 410" in capfd.readouterr().err


def test_what_temporary_files_a_server_has(tmp_path: Path) -> None:
    directory = tmp_path / "temporary"
    directory.mkdir()
    with (
        open(directory / "one", "wb") as one,
        open(directory / "one", "rb"),
        tempfile.TemporaryFile(dir=directory) as nameless,
        open(tmp_path / "elsewhere", "wb") as elsewhere,
    ):
        for file, size in ((one, 1 << 20), (nameless, 2 << 20), (elsewhere, 4 << 20)):
            file.write(bytes(size))
            file.flush()
        found = Temporary(str(directory), [os.getpid()])
        assert found.now() == 3 << 20
        assert Temporary(str(tmp_path / "temp"), [os.getpid()]).now() == 0
        with found:
            until(lambda: found.most, "a look")
    # Nobody has that number.
    assert Temporary(str(directory), [2**22 + 1]).now() == 0


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
    names = {count: bench_slow_clients.name(count) for count in bench_slow_clients.LOADS}
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


def upload_row(p99: float, temporary: float) -> results.VariantResult:
    made = row(80, p99)
    for run in made.runs:
        run.update(temporary_mb=temporary, server_cpu_seconds=1.0)
    return made


def test_what_is_said_of_uploads() -> None:
    ways = {way: upload_row(99.5, 0) for way in bench_slow_clients.WAYS}
    ways["stock, nginx"] = upload_row(9.5, 512)
    length = samples.case(ways, name="glance-33-shipped-4-uploads")
    # Rows that were not measured.
    chunked = samples.case({"stock": ways["stock"]}, name="glance-33-shipped-4-uploads-chunked")
    (table,) = tables.judgement(samples.result(length, chunked))
    assert [line[0] for line in table.rows] == [*bench_slow_clients.WAYS] * 2
    assert [line[1] for line in table.rows] == ["with Content-Length"] * 4 + ["chunked"] * 4
    assert [line[2] for line in table.rows] == ["99.5", "99.5", "99.5", "9.5", "99.5", EMPTY, EMPTY, EMPTY]
    assert [line[3] for line in table.rows] == ["0", "0", "0", "512", "0", EMPTY, EMPTY, EMPTY]
    assert table.rows[0][5] == "80" and table.rows[0][4] == table.rows[3][4] != EMPTY
    # Beside downloads, which alone have goals.
    both = samples.result(samples.case({"stock": row(1, 1), "fastio": row(1, 1)}, name="glance-33-shipped-4"), length)
    assert [each.title for each in tables.judgement(both)] == ["Goals", table.title]
    assert len(tables.judgement(both)[1].rows) == 4


def test_the_service_is_the_one_that_is_shipped() -> None:
    for case in bench_slow_clients.CASES:
        shipped = case.backend_parameters
        assert (shipped["workers"], shipped["threads"]) == (4, 1)
        name, parameters = case.beside["fastio"]
        upload = case.parameters["task"] == "upload"
        own = {"fastio": "on", **({} if upload else {"also": bench_slow_clients.SLOW_CLIENTS})}
        assert (name, parameters) == (case.backend, {**shipped, **own})
        if upload:
            assert case.parameters["clients"] == shipped["workers"]
            assert case.beside["post-buffering"] == (case.backend, {**shipped, "post_buffering": 1 << 20})
            assert case.beside["proxied"] == (case.backend, {**shipped, "proxied": 1})
    assert bench_slow_clients.SLOW_CLIENTS in fastio.names()
