"""The plain HTTP client of the suites: GET over a connection of its own, whose body is only handed on.

``python -m benchmarks.harness.http_client BASE`` is a client in a process of its own: a line ``count PATH`` or ``hash
PATH`` is answered by the bytes or the SHA-256 of the body.
"""

import contextlib
import http.client
import socket
import sys
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.harness.worker import digest, pieces_of

#: Seconds that a server may take for the next piece.
PATIENCE = 120


def fetch(
    url: str, take: Callable[[Any], object], room: int = 256 << 10, headers: Mapping[str, str] | None = None
) -> None:  # fmt: skip
    """Give ``take`` the pieces of the body, in chunked encoding with their frame.

    :param room: bytes of the buffer that they are received into

    :raises RuntimeError: if the answer is not 200
    """
    found = urllib.parse.urlsplit(url)
    buffer = memoryview(bytearray(room))
    with socket.create_connection((found.hostname, found.port or 80), timeout=PATIENCE) as connection:
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
        take(rest)
        while count := connection.recv_into(buffer):
            take(buffer[:count])


def fetched(url: str, room: int = 256 << 10, headers: Mapping[str, str] | None = None) -> int:
    """How many bytes the body has, with all that is around its chunks."""
    counts: list[int] = []
    fetch(url, lambda piece: counts.append(len(piece)), room, headers)
    return sum(counts)


def fetched_sha256(url: str) -> str:
    """The SHA-256 of the body."""
    found = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(found.hostname or "", found.port, timeout=PATIENCE)
    with contextlib.closing(connection):
        connection.request("GET", found.path, headers={"Connection": "close"})
        with connection.getresponse() as answer:
            return digest(pieces_of(answer))


def put(url: str, body: Any, headers: Mapping[str, str] | None = None) -> str:
    """Send a file with PUT, 1 MiB at a time; returns what is answered.

    :raises RuntimeError: if the answer is an error
    """
    found = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(found.hostname or "", found.port, timeout=PATIENCE, blocksize=1 << 20)
    with contextlib.closing(connection):
        connection.request("PUT", found.path, body, dict(headers or {}))
        answer = connection.getresponse()
        said = answer.read()
    if answer.status >= 300:
        raise RuntimeError(f"{found.path}: {answer.status} {said[:300]!r}")
    return said.decode()


def main(base: str) -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        what, path = line.split()
        print(fetched(base + path, 1 << 20) if what == "count" else fetched_sha256(base + path), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
