"""An HTTP server that keeps objects, and misbehaves on request."""

import contextlib
import re
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
    """The objects of the server, and the requests that it has seen."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.numbers: list[int] = []
        #: addresses of the clients, one for each connection that had a request; a port may come again
        self.connections: list[tuple[str, int]] = []
        self.lock = threading.Lock()

    def fill(self, plan: Plan) -> None:
        """Keep all objects of the first operation, which has one container and one size."""
        operation = plan.operations[0]
        assert operation.objects is not None
        chosen, size = selectors.selector(operation.objects.selector), selectors.size(operation.sizes, 0)
        for number in range(chosen.low, chosen.high + 1):
            path = f"/{operation.containers.name(1)}/{operation.objects.name(number)}"
            self.kept[path] = b"".join(Content(plan).pieces(1 << 32 | number, size))


def well(handler: BaseHTTPRequestHandler, count: int) -> bool:
    return False


def reset(handler: BaseHTTPRequestHandler) -> None:
    """Have the client see its connection reset."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def answer(handler: BaseHTTPRequestHandler, status: int, body: bytes = b"", length: int | None = None) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body) if length is None else length))
    handler.end_headers()
    handler.wfile.write(body)


@contextlib.contextmanager
def serving(plan: Plan | None = None, fault: Fault = well) -> Iterator[tuple[str, Objects]]:
    """Yields its URL, and what it keeps: at first the objects of a plan.

    It speaks as much of the protocol of Swift, without a login, as of that of the log server.
    """
    objects = Objects()
    if plan is not None:
        objects.fill(plan)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        is_known = False

        def do_PUT(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if not self._failed():
                objects.kept[self.path] = data
                answer(self, 201)

        def do_GET(self) -> None:
            if not self._failed():
                data = objects.kept.get(self.path.partition("?")[0])
                answer(self, 404 if data is None else 200, data or b"")

        def do_DELETE(self) -> None:
            if not self._failed():
                answer(self, 404 if objects.kept.pop(self.path, None) is None else 204)

        def _failed(self) -> bool:
            with objects.lock:
                objects.numbers.append(int(re.sub(r"^.*?(\d*)$", r"\1", self.path.partition("?")[0]) or 0))
                if not self.is_known:
                    self.is_known = True
                    objects.connections.append(self.client_address)
                count = len(objects.numbers)
            return fault(self, count)

        def log_message(self, *_: object) -> None:
            pass

        def finish(self) -> None:
            with contextlib.suppress(OSError, ValueError):
                super().finish()

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Clients that go away are what it is for."""

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", objects
        finally:
            server.shutdown()
            thread.join()
