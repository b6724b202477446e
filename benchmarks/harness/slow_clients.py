"""Slow clients, all in a process of its own, each of which makes one transfer after the other at a limited rate.

``python -m benchmarks.harness.slow_clients JSON`` says ``ready`` once all of them have begun and one has moved data,
and ``ended`` when the first transfer ends after that. It goes on until the end of its standard input. Then it prints,
as JSON, what has been moved since it was ready: ``bytes``, how many transfers have ``ended``, how many of the clients
have moved anything (``served``), and of uploads the images that the service has taken (``complete``). The connections
are cut off. If an answer is wrong or ends early, the process fails: every byte of a download is compared. What the
service has of an upload is not theirs to look into.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import mmap
import re
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

from benchmarks.backends.base import HOST
from benchmarks.harness.children import Child

#: Bytes that a client reads or sends at a time.
PIECE = 128 << 10
#: Bytes that the kernel may keep for a client: not so many that one end would be done long before the other.
BUFFER = 256 << 10
#: Seconds by which a client may be late and still be faster than its rate for it, as the buffer lets it.
LATE = 0.25


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is moved.

    :param port: of the server
    :param path: of the image; of uploads with ``{}`` for it
    :param file: has the same content
    :param clients: how many
    :param rate: bytes a second, of each
    :param ramp: seconds in which they start one after the other
    :param source: address that they come from
    :param images: those that are given the data, each once; a client that finds none left waits for the end. Without
        them the clients download one image over and over.
    :param chunked: uploads without Content-Length
    """

    port: int
    path: str
    file: str
    clients: int
    rate: float
    ramp: float
    source: str = ""
    images: Sequence[str] | None = None
    chunked: bool = False


_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)


class Wrong(Exception):
    """What has come is not what was asked for."""


class Pace:
    """Holds a transfer to its rate, in bytes a second."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._due = asyncio.get_running_loop().time()

    async def after(self, count: int) -> None:
        """Wait until the rate allows more than the ``count`` bytes that have just been moved."""
        now = asyncio.get_running_loop().time
        self._due = max(self._due, now() - LATE) + count / self._rate
        await asyncio.sleep(self._due - now())


class Crowd:
    """The clients of this process."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        with open(plan.file, "rb") as file:
            self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._data = asyncio.Event()
        self._is_ready = False
        self._bytes = self._ended = 0
        self._served: set[int] = set()
        self._images = iter(plan.images or ())
        self._complete: list[str] = []

    async def download(self, number: int) -> None:
        async with self.connected() as sock:
            request = f"GET {self._plan.path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n"
            await asyncio.get_running_loop().sock_sendall(sock, request.encode())
            head, data = await self.head(sock)
            length = _LENGTH.search(head + b"\r\n")
            if b" 200 " not in head.partition(b"\r\n")[0] or length is None or int(length[1]) != len(self._content):
                raise Wrong(f"an answer began with {head[:400]!r}")
            position, size, pace = 0, len(self._content), Pace(self._plan.rate)
            while True:
                if self._content[position : position + len(data)] != data:
                    raise Wrong(f"other bytes than those of the image, between {position} and {position + len(data)}")
                position += len(data)
                if data:
                    self.count(number, len(data))
                if position == size:
                    return
                await pace.after(len(data))
                data = await asyncio.get_running_loop().sock_recv(sock, min(PIECE, size - position))
                if not data:
                    raise Wrong(f"a body ended after {position} of {size} bytes")

    async def upload(self, number: int) -> None:
        image = next(self._images, None)
        if image is None:
            await asyncio.Event().wait()
        loop, chunked = asyncio.get_running_loop(), self._plan.chunked
        async with self.connected() as sock:
            length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(self._content)}"
            lines = (
                f"PUT {self._plan.path.format(image)} HTTP/1.1", f"Host: {HOST}", "Connection: close",
                "Content-Type: application/octet-stream", length, "", "",
            )  # fmt: skip
            await loop.sock_sendall(sock, "\r\n".join(lines).encode())
            pace = Pace(self._plan.rate)
            for start in range(0, len(self._content), PIECE):
                piece = self._content[start : start + PIECE]
                await loop.sock_sendall(sock, b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
                self.count(number, len(piece))
                await pace.after(len(piece))
            if chunked:
                await loop.sock_sendall(sock, b"0\r\n\r\n")
            head, _ = await self.head(sock)
        if b" 204 " not in head.partition(b"\r\n")[0]:
            raise Wrong(f"the answer to an upload began with {head[:400]!r}")
        self._complete.append(str(image))

    def count(self, number: int, count: int) -> None:
        """A client has moved bytes."""
        self._data.set()
        if self._is_ready:
            self._bytes += count
            self._served.add(number)

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[socket.socket]:
        """A connection to the server, with small buffers."""
        with socket.socket() as sock:
            sock.setblocking(False)
            # Before it connects: the window that it offers follows from that.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
            if self._plan.source:
                sock.bind((self._plan.source, 0))
            await asyncio.get_running_loop().sock_connect(sock, (HOST, self._plan.port))
            yield sock

    async def head(self, sock: socket.socket) -> tuple[bytes, bytes]:
        """The head of the answer, and what has come of its body."""
        received = b""
        while b"\r\n\r\n" not in received:
            more = await asyncio.get_running_loop().sock_recv(sock, PIECE)
            if not more:
                raise Wrong(f"an answer ended after {received[:200]!r}")
            received += more
        head, _, data = received.partition(b"\r\n\r\n")
        return head, data

    async def go_on(self) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        # No data ever comes, so it is readable only at its end.
        end = asyncio.Event()
        loop.add_reader(sys.stdin.fileno(), end.set)
        over = loop.create_task(end.wait())
        begun = loop.create_task(self._begun())
        clients = [loop.create_task(self._client(number)) for number in range(self._plan.clients)]
        await asyncio.wait([over, *clients], return_when=asyncio.FIRST_COMPLETED)
        for task in clients:
            if task.done():
                # A client never returns.
                task.result()
        found = {"bytes": self._bytes, "ended": self._ended, "served": len(self._served), "complete": self._complete}
        unfinished: list[asyncio.Task[Any]] = [over, begun, *clients]
        for each in unfinished:
            each.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)
        return found

    async def _begun(self) -> None:
        await asyncio.sleep(self._plan.ramp)
        await self._data.wait()
        self._is_ready = True
        print("ready", flush=True)

    async def _client(self, number: int) -> None:
        await asyncio.sleep(self._plan.ramp * number / self._plan.clients)
        while True:
            await (self.download if self._plan.images is None else self.upload)(number)
            if self._is_ready:
                self._ended += 1
                if self._ended == 1:
                    print("ended", flush=True)


class Clients(Child):
    """The process, as a context manager; made when all of its clients have begun."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(__name__, json.dumps(dataclasses.asdict(plan)), name="a slow client failed")
        self.started()

    def wait(self) -> None:
        """Wait for the end of a transfer."""
        self.read()

    def stop(self) -> dict[str, Any]:
        """End it; returns its figures. Raises RuntimeError if an answer was wrong; the process has said what."""
        lines = [line for line in self.end().splitlines() if line.startswith("{")]
        found: dict[str, Any] = json.loads(lines[0])
        return found


async def _main(plan: Plan) -> dict[str, Any]:
    # Within the loop that it uses.
    return await Crowd(plan).go_on()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_main(Plan(**json.loads(sys.argv[1]))))), flush=True)
