"""HTTP servers: one has the objects of a plan, one keeps what it is sent; both misbehave on request."""

import contextlib
import itertools
import socket
import struct
import threading
from collections.abc import Callable, Iterator

# From the module itself: what the package has of that name is eventlet's once it was imported.
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from benchmarks.load import selectors
from benchmarks.load.content import Content
from benchmarks.load.plan import Plan

#: Does with a request something else than to answer it well; returns False to have it answered well after all.
Fault = Callable[[BaseHTTPRequestHandler, int], bool]


class Objects:
    """What the server has seen."""

    def __init__(self, plan: Plan, fault: Fault) -> None:
        self.content = Content(plan)
        self.fault = fault
        self.numbers: list[int] = []
        #: addresses of the clients, one for each connection that had a request; a port may come again
        self.connections: list[tuple[str, int]] = []
        self.lock = threading.Lock()


def well(handler: BaseHTTPRequestHandler, count: int) -> bool:
    return False


def reset(handler: BaseHTTPRequestHandler) -> None:
    """Have the client see its connection reset."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def answer(handler: BaseHTTPRequestHandler, status: int, body: bytes, length: int | None = None) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body) if length is None else length))
    handler.end_headers()
    handler.wfile.write(body)


@contextlib.contextmanager
def serving(plan: Plan, fault: Fault = well) -> Iterator[tuple[str, Objects]]:
    """Yields its URL and what it sees; the objects are those of the first container, with one size for all."""
    objects = Objects(plan, fault)

    class Handler(_Handler):
        is_known = False

        def do_GET(self) -> None:
            number = int(self.path.rpartition("-")[2])
            size = selectors.size(plan.operations[0].sizes, number)
            with objects.lock:
                objects.numbers.append(number)
                if not self.is_known:
                    self.is_known = True
                    objects.connections.append(self.client_address)
                count = len(objects.numbers)
            if objects.fault(self, count):
                return
            answer(self, 200, b"".join(objects.content.pieces(1 << 32 | number, size)))

    with _running(Handler) as url:
        yield url, objects


@contextlib.contextmanager
def storing(fault: Fault = well) -> Iterator[str]:
    """A Swift without a login; yields the URL of its account."""
    kept: dict[str, bytes] = {}
    count = itertools.count(1)

    class Handler(_Handler):
        def do_PUT(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if not fault(self, next(count)):
                kept[self.path] = data
                answer(self, 201, b"")

        def do_GET(self) -> None:
            data = kept.get(self.path.partition("?")[0])
            answer(self, 404 if data is None else 200, data or b"")

        def do_DELETE(self) -> None:
            answer(self, 404 if kept.pop(self.path, None) is None else 204, b"")

    with _running(Handler) as url:
        yield f"{url}/v1/AUTH_test"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def finish(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            super().finish()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Clients that go away are what it is for."""


@contextlib.contextmanager
def _running(handler: type[_Handler]) -> Iterator[str]:
    with _Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
