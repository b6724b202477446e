"""A server that records what clients upload, byte by byte, and gives the prepared answers."""

import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import fastio
from fastio import counters
from tests.outcome import outcome
from tests.stores.http_server import Answer, Server
from tests.stores.images import KIB

#: Bytes of a block that urllib3 sends, and of what is sent first.
BLOCK = 16 * KIB
BLOCKS = "urllib3_blocks"
SENDFILE = "urllib3_sendfile"
#: Patches in effect in a run, after a stock one.
RUNS: list[list[str]] = [[], [BLOCKS], [SENDFILE], [BLOCKS, SENDFILE]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Recorder(Server):
    """A server that records requests as they come.

    :param size: bytes of each request's body, whatever its headers say; ``None`` of one that ends as chunks do
    :param answers: to the requests, in this order; the last one is said again
    :param early: its answer to a request's headers, before it reads the body
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
        self._early = early
        self._tunnel = tunnel
        #: requests for a tunnel, in the order of arrival
        self.tunnels: list[bytes] = []
        self._answers = list(answers)
        #: headers and body of each request, as they came
        self.recorded: list[tuple[bytes, bytes]] = []
        super().__init__(lambda request: Answer(), context)
        self.url += "/"

    def _begin(self, connection: socket.socket) -> None:
        if self._tunnel:
            with connection.makefile("rb", buffering=0) as stream:
                self.tunnels.append(_until(stream, b"\r\n\r\n"))
            connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")

    def _exchange(self, connection: socket.socket, stream: Any, number: int) -> bool:
        head = _until(stream, b"\r\n\r\n")
        if not head:
            return False
        connection.sendall(self._early)
        body = _until(stream, b"\r\n0\r\n\r\n") if self.size is None else stream.read(self.size)
        self.recorded.append((head, body))
        connection.sendall(self._answers[min(len(self.recorded), len(self._answers)) - 1])
        return True


def _until(stream: Any, end: bytes) -> bytes:
    """Read up to ``end``, or to the end of the connection."""
    data = bytearray()
    while not data.endswith(end) and (line := stream.readline()):
        data += line
    return bytes(data)


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
    """Return ``send()`` and the received data, which have to be the same in all runs."""
    found = []
    for names in runs:
        server.recorded.clear()
        with fastio.patched(names, strict=True):
            returned = outcome(send)
        found.append((returned, list(server.recorded)))
    for names, each in zip(runs[1:], found[1:], strict=True):
        assert each == found[0], names
    counters.reset()
    return found[0]


def counted(name: str) -> tuple[int, int, dict[str, int]]:
    counts = fastio.metrics().patches[name]
    return counts.calls, counts.bytes, {str(reason): count for reason, count in counts.fallbacks.items()}
