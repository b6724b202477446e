"""Clients that upload one image after the other; see :mod:`benchmarks.harness.slow_clients.clients`.

Beside the figures they print ``complete``, the images that the service has taken. What it has of them is not theirs to
look into.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from benchmarks.backends.base import HOST
from benchmarks.harness.slow_clients import clients
from benchmarks.harness.slow_clients.clients import PIECE, Crowd, Pace, Wrong, main


@dataclasses.dataclass(frozen=True)
class Plan(clients.Plan):
    """What is uploaded.

    :param path: with ``{}`` for the image
    :param images: those that are given the data, each once; a client that finds none left waits for the end
    :param chunked: without Content-Length
    """

    images: Sequence[str] = ()
    chunked: bool = False

    module: ClassVar[str] = "benchmarks.harness.slow_clients.writers"


class Writers(Crowd):
    """Each uploads the content to the next image."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._chunked = plan.chunked
        self._images = iter(plan.images)
        self._complete: list[str] = []

    def known(self) -> dict[str, Any]:
        return {"complete": self._complete}

    async def transfer(self, number: int) -> None:
        image = next(self._images, None)
        if image is None:
            await asyncio.Event().wait()
        loop = asyncio.get_running_loop()
        async with self.connected() as sock:
            length = "Transfer-Encoding: chunked" if self._chunked else f"Content-Length: {len(self._content)}"
            lines = (
                f"PUT {self._plan.path.format(image)} HTTP/1.1", f"Host: {HOST}", "Connection: close",
                "Content-Type: application/octet-stream", length, "", "",
            )  # fmt: skip
            await loop.sock_sendall(sock, "\r\n".join(lines).encode())
            pace = Pace(self._plan.rate)
            for piece in self._pieces():
                await loop.sock_sendall(sock, b"%x\r\n%b\r\n" % (len(piece), piece) if self._chunked else piece)
                self.count(number, len(piece))
                await pace.after(len(piece))
            if self._chunked:
                await loop.sock_sendall(sock, b"0\r\n\r\n")
            head, _ = await self.head(sock)
        if b" 204 " not in head.partition(b"\r\n")[0]:
            raise Wrong(f"the answer to an upload began with {head[:400]!r}")
        self._complete.append(str(image))

    def _pieces(self) -> Iterator[bytes]:
        for start in range(0, len(self._content), PIECE):
            yield self._content[start : start + PIECE]


if __name__ == "__main__":
    main(Writers, Plan)
