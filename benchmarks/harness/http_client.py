"""The plain HTTP client of the suites: a connection for each request, and bodies that are only counted or handed on.

``python -m benchmarks.harness.http_client BASE`` is a client in a separate process: a line ``count PATH`` or ``hash
PATH`` is answered by the bytes or the SHA-256 of the body.
"""

import contextlib
import http.client
import socket
import sys
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.harness.worker import MIB, digest
from fastio.io import scratch

#: Seconds that a server may take for the next piece.
PATIENCE = 120


def fetched(url: str, room: int = 256 << 10, headers: Mapping[str, str] | None = None, source: str = "") -> int:
    """How many bytes the body of an answer has, with all that is around its chunks.

    :param room: bytes of the buffer that they are received into
    :param source: address that the request comes from
    :raises RuntimeError: if the answer is not 200
    """
    found = urllib.parse.urlsplit(url)
    buffer = scratch.allocate(room)
    server, own = (found.hostname or "", found.port or 80), (source, 0) if source else None
    with socket.create_connection(server, PATIENCE, own) as connection:
        lines = {"Host": found.hostname, "Connection": "close", **(headers or {})}
        fields = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        connection.sendall(f"GET {found.path} HTTP/1.1\r\n{fields}\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            piece = connection.recv(64 << 10)
            if not piece:
                raise RuntimeError(f"{url}: an answer without an end of its headers: {head[:300]!r}")
            head += piece
        head, _, rest = head.partition(b"\r\n\r\n")
        if b" 200 " not in head.splitlines()[0]:
            raise RuntimeError(f"{url}: {head[:300]!r}")
        total = len(rest)
        while count := connection.recv_into(buffer):
            total += count
    return total


class _Connection(http.client.HTTPConnection):
    """A connection from an address, for which the kernel keeps so many bytes each way."""

    def __init__(self, url: str, source: str, buffer: int) -> None:
        found = urllib.parse.urlsplit(url)
        super().__init__(found.hostname or "", found.port, PATIENCE, (source, 0) if source else None, MIB)
        self._room = buffer
        self._create_connection = self._made

    def _made(self, address: tuple[str, int], timeout: float, source: tuple[str, int] | None) -> socket.socket:
        made = socket.socket()
        made.settimeout(timeout)
        if self._room:
            # Before it connects: the window that it offers follows from that.
            for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                made.setsockopt(socket.SOL_SOCKET, option, self._room)
        if source:
            made.bind(source)
        made.connect(address)
        return made


def pieces(url: str, room: int = MIB, source: str = "", buffer: int = 0) -> Iterator[bytes]:
    """The body of an answer as it comes, in pieces of ``room`` bytes at most.

    :param source: address that the request comes from
    :param buffer: bytes that the kernel may keep; 0: as many as it likes
    :raises RuntimeError: if the answer is not 200
    """
    with contextlib.closing(_Connection(url, source, buffer)) as connection:
        connection.request("GET", urllib.parse.urlsplit(url).path, headers={"Connection": "close"})
        with connection.getresponse() as answer:
            if answer.status != 200:
                raise RuntimeError(f"{url}: {answer.status} {answer.read()[:300]!r}")
            yield from iter(lambda: answer.read1(room), b"")


def put(url: str, body: Any, headers: Mapping[str, str] | None = None, source: str = "", buffer: int = 0) -> str:
    """Send a file, 1 MiB at a time, or pieces with PUT; returns what is answered.

    :raises RuntimeError: if the answer is an error
    """
    path = urllib.parse.urlsplit(url).path
    with contextlib.closing(_Connection(url, source, buffer)) as connection:
        connection.request("PUT", path, body, dict(headers or {}))
        answer = connection.getresponse()
        said = answer.read()
    if answer.status >= 300:
        raise RuntimeError(f"{path}: {answer.status} {said[:300]!r}")
    return said.decode()


def main(base: str) -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        what, path = line.split()
        print(fetched(base + path, MIB) if what == "count" else digest(pieces(base + path)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
