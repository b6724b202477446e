"""Clients that read one image over and over at a limited rate, all in a process of its own, and compare every byte.

``python -m benchmarks.suites.slow_clients.readers JSON`` says ``ready`` once all of them have begun and one has data,
``ended`` when the first download ends after that, and goes on until the end of its standard input. Then it prints, as
JSON, what has come since it was ready: ``bytes``, how many downloads have ``ended``, and to how many of the clients
anything has come (``served``). The connections are cut off. If an answer is wrong or ends early, the process fails.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import mmap
import re
import socket
import subprocess
import sys
from typing import Any

from benchmarks.backends.base import HOST, ROOT

#: Bytes that a client reads at a time.
PIECE = 128 << 10
#: Bytes that the kernel may keep for a client: not so many that a server would be done long before its client.
BUFFER = 256 << 10
#: Seconds by which a client may be late and still read faster than its rate for it, as the buffer lets it.
LATE = 0.25
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is read.

    :param port: of the server
    :param path: of the image
    :param file: has the same content
    :param clients: how many
    :param rate: bytes a second, of each
    :param ramp: seconds in which they start one after the other
    :param source: address that they come from
    """

    port: int
    path: str
    file: str
    clients: int
    rate: float
    ramp: float
    source: str = ""


class Wrong(Exception):
    """What has come is not the image."""


class Readers:
    """The clients of this process."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        with open(plan.file, "rb") as file:
            self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._data = asyncio.Event()
        self._is_ready = False
        self._bytes = self._ended = 0
        self._served: set[int] = set()

    async def go_on(self) -> dict[str, int]:
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
        found = {"bytes": self._bytes, "ended": self._ended, "served": len(self._served)}
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
            await self._download(number)
            if self._is_ready:
                self._ended += 1
                if self._ended == 1:
                    print("ended", flush=True)

    async def _download(self, number: int) -> None:
        loop = asyncio.get_running_loop()
        with socket.socket() as sock:
            sock.setblocking(False)
            # Before it connects: the window that it offers follows from that.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
            if self._plan.source:
                sock.bind((self._plan.source, 0))
            await loop.sock_connect(sock, (HOST, self._plan.port))
            request = f"GET {self._plan.path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n"
            await loop.sock_sendall(sock, request.encode())
            received = b""
            while b"\r\n\r\n" not in received:
                more = await loop.sock_recv(sock, PIECE)
                if not more:
                    raise Wrong(f"an answer ended after {received[:200]!r}")
                received += more
            head, _, data = received.partition(b"\r\n\r\n")
            length = _LENGTH.search(head + b"\r\n")
            if b" 200 " not in head.partition(b"\r\n")[0] or length is None or int(length[1]) != len(self._content):
                raise Wrong(f"an answer began with {head[:400]!r}")
            await self._body(sock, number, data)

    async def _body(self, sock: socket.socket, number: int, data: bytes) -> None:
        """Read the body, of which ``data`` has come."""
        loop = asyncio.get_running_loop()
        position, size, due = 0, len(self._content), loop.time()
        while True:
            if self._content[position : position + len(data)] != data:
                raise Wrong(f"other bytes than those of the image, between {position} and {position + len(data)}")
            position += len(data)
            if data:
                self._count(number, len(data))
            if position == size:
                return
            due = max(due, loop.time() - LATE) + len(data) / self._plan.rate
            await asyncio.sleep(due - loop.time())
            data = await loop.sock_recv(sock, min(PIECE, size - position))
            if not data:
                raise Wrong(f"a body ended after {position} of {size} bytes")

    def _count(self, number: int, count: int) -> None:
        self._data.set()
        if self._is_ready:
            self._bytes += count
            self._served.add(number)


class Clients:
    """The process, as a context manager that returns when all of its clients have begun."""

    def __init__(self, plan: Plan) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, json.dumps(dataclasses.asdict(plan))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        )  # fmt: skip

    def __enter__(self) -> Clients:
        try:
            self._expect("ready")
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait(self) -> None:
        """Wait for the end of a download."""
        self._expect("ended")

    def stop(self) -> dict[str, int]:
        """End it; returns its figures.

        :raises RuntimeError: if an answer was wrong; the process has said what
        """
        output, _ = self._process.communicate()
        lines = [line for line in output.splitlines() if line.startswith("{")]
        if self._process.returncode or not lines:
            raise RuntimeError("a slow client failed: see above")
        found: dict[str, int] = json.loads(lines[0])
        return found

    def _expect(self, word: str) -> None:
        assert self._process.stdout is not None
        if self._process.stdout.readline() != f"{word}\n":
            raise RuntimeError("a slow client failed: see above")

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


def main(told: dict[str, Any]) -> None:
    async def go_on() -> dict[str, int]:
        return await Readers(Plan(**told)).go_on()

    print(json.dumps(asyncio.run(go_on())), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
