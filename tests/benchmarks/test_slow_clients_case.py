"""The benchmark of slow clients: with little data, what its clients notice, and what is asked of the figures."""

import dataclasses
import os
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from benchmarks.backends.base import HOST
from benchmarks.harness import slow_clients
from benchmarks.harness.slow_clients import Clients, Plan
from benchmarks.suites.glance.bench_glance import ELSEWHERE
from tests.eventually import until

#: Divides nothing.
CONTENT = os.urandom(1_300_001)


# --- the clients


class Server:
    """Answers each request with the given answer, and knows which client has asked."""

    def __init__(self) -> None:
        self.body = CONTENT
        self.length = len(CONTENT)
        self.status = 200
        #: addresses and ports of the clients
        self.seen: list[tuple[str, int]] = []
        #: paths of uploads -> received bytes
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
    assert figures["bytes"] <= plan.clients * slow_clients.PIECE < len(CONTENT)
    assert figures["ended"] == 0


#: Other content of the same length.
OTHER = CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])


@pytest.mark.parametrize(
    ("damaged", "named"),
    [
        ({"body": OTHER}, "other bytes than those of the image"),
        ({"body": CONTENT[:-1]}, "a body ended after 1300000 of 1300001 bytes"),
        ({"length": len(CONTENT) - 1}, "a body ended after 1300000 of 1300001 bytes"),
        ({"status": 503}, "503"),
    ],
)
def test_wrong_answers_are_noticed(
    server: Server, plan: Plan, damaged: dict[str, Any], named: str, capfd: pytest.CaptureFixture[str]
) -> None:
    vars(server).update(damaged)
    with pytest.raises(RuntimeError, match="a slow client failed"), Clients(plan) as running:
        running.wait()
    assert named in capfd.readouterr().err


def test_later_errors_are_noticed(server: Server, plan: Plan) -> None:
    with Clients(plan) as running:
        running.wait()
        server.body = OTHER
        count = len(server.seen)
        # Each client has had the other content, so at least one has failed and ended the process.
        until(lambda: len(server.seen) > count + plan.clients or running.process.poll() is not None, "its end")
        until(lambda: running.process.poll() is not None, "the end of the process")
        with pytest.raises(RuntimeError, match="a slow client failed"):
            running.stop()


@pytest.fixture
def uploads(plan: Plan) -> Plan:
    images = [f"image-{number}" for number in range(7)]
    return Plan(**{**dataclasses.asdict(plan), "path": "/v2/{}/file", "images": images})


@pytest.mark.parametrize("chunked", [False, True], ids=["with its length", "chunked"])
def test_clients_upload_one_image_after_the_other(server: Server, uploads: Plan, chunked: bool) -> None:
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


def test_an_upload_that_is_refused_is_noticed(server: Server, uploads: Plan, capfd: pytest.CaptureFixture[str]) -> None:
    server.status = 410
    with pytest.raises(RuntimeError, match="a slow client failed"), Clients(uploads) as running:
        running.wait()
    assert "/file: 410" in capfd.readouterr().err
