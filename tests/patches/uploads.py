"""A server that records what clients upload, byte by byte, and says what it is told to say."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import fastio
from fastio import counters
from tests.outcome import outcome

KIB = 1 << 10
MIB = 1 << 20
#: Bytes of a block that urllib3 sends, and of what is sent first.
BLOCK = 16 * KIB
BLOCKS = "urllib3_blocks"
SENDFILE = "urllib3_sendfile"
#: What is in effect in a run, after a stock one.
RUNS: list[list[str]] = [[], [BLOCKS], [SENDFILE], [BLOCKS, SENDFILE]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Recorder:
    """A server on a port of its own.

    :param size: bytes of each request's body, whatever its headers say; ``None`` of one that ends as chunks do
    :param answers: to the requests, in this order; the last one is said again
    :param context: with TLS
    :param early: what it says when it has a request's headers, before it reads the body
    :param tunnel: whether it is a proxy as well, which makes a tunnel to itself for each connection
    """

    def __init__(
        self,
        size: int | None,
        answers: Sequence[bytes] = (OK,),
        context: ssl.SSLContext | None = None,
        early: bytes = b"",
        tunnel: bool = False,
    ) -> None:
        self.size = size
        self._context = context
        self._early = early
        self._tunnel = tunnel
        #: what asked for a tunnel, as it came
        self.tunnels: list[bytes] = []
        self._answers = list(answers)
        #: headers and body of each request, as they came
        self.requests: list[tuple[bytes, bytes]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.port}/"
        self._connections: list[socket.socket] = []
        self._closing = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._closing:
                connection.close()
                self._listener.close()
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        # The second is what eventlet raises where TLS has ended meanwhile.
        with contextlib.suppress(OSError, ValueError), contextlib.ExitStack() as stack:
            stack.callback(lambda: connection.close())
            if self._tunnel:
                self.tunnels.append(_head(connection))
                connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            self._connections.append(connection)
            while self._take(connection):
                connection.sendall(self._answers[min(len(self.requests), len(self._answers)) - 1])

    def _take(self, connection: socket.socket) -> bool:
        data = bytearray(_head(connection))
        if not data:
            return False
        end = data.index(b"\r\n\r\n") + 4
        connection.sendall(self._early)
        while len(data) - end < self.size if self.size is not None else not data.endswith(b"\r\n0\r\n\r\n"):
            if not (piece := connection.recv(MIB)):
                break
            data += piece
        self.requests.append((bytes(data[:end]), bytes(data[end:])))
        return True

    def close(self) -> None:
        self._closing = True
        # Wakes the thread in accept(). Those that serve close their connections themselves.
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port)).close()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def _head(connection: socket.socket) -> bytes:
    """What came up to the end of the headers, and maybe more; nothing if the connection ends before."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (piece := connection.recv(64 * KIB)):
            return b""
        data += piece
    return data


@contextlib.contextmanager
def recorder(
    size: int | None, answers: Sequence[bytes] = (OK,), context: ssl.SSLContext | None = None, **options: Any
) -> Iterator[Recorder]:
    """The server for the ``with`` block."""
    server = Recorder(size, answers, context, **options)
    try:
        yield server
    finally:
        server.close()


def put(url: str, body: Any, length: int | None, **options: Any) -> Any:
    """The status of what urllib3 itself sends, with a ``Content-Length`` if there is one."""
    import urllib3

    with urllib3.PoolManager(retries=options.pop("retries", False)) as manager:
        headers = {} if length is None else {"Content-Length": str(length)}
        return manager.request("PUT", url, body=body, headers=headers, **options).status


def compare(server: Recorder, send: Callable[[], Any], runs: list[list[str]] = RUNS) -> Any:
    """What ``send()`` returns and what arrives, which has to be the same in all runs."""
    found = []
    for names in runs:
        server.requests.clear()
        with fastio.patched(names, strict=True):
            returned = outcome(send)
        found.append((returned, list(server.requests)))
    for names, each in zip(runs[1:], found[1:], strict=True):
        assert each == found[0], names
    counters.reset()
    return found[0]


def counted(name: str) -> tuple[int, int, dict[str, int]]:
    counts = fastio.metrics().patches[name]
    return counts.calls, counts.bytes, {str(reason): count for reason, count in counts.fallbacks.items()}


def upstreams_block() -> int:
    """Bytes that urllib3 sends at a time."""
    import urllib3

    return 16384 if int(urllib3.__version__.split(".")[0]) >= 2 else 8192
