"""Clients that read one image over and over, and compare every byte, as :mod:`.clients` has them go on.

The kernel keeps little for them: with much, a server would be done with small images long before its client.
"""

from __future__ import annotations

import asyncio
import re
import socket

from benchmarks.backends.base import HOST
from benchmarks.harness.slow_clients.clients import PIECE, Crowd, Pace, Plan, Wrong, main

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)


class Readers(Crowd):
    """Each downloads the image."""

    async def transfer(self, number: int) -> None:
        async with self.connected() as sock:
            request = f"GET {self._plan.path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n"
            await asyncio.get_running_loop().sock_sendall(sock, request.encode())
            head, data = await self.head(sock)
            length = _LENGTH.search(head + b"\r\n")
            if b" 200 " not in head.partition(b"\r\n")[0] or length is None or int(length[1]) != len(self._content):
                raise Wrong(f"an answer began with {head[:400]!r}")
            await self._body(sock, number, data)

    async def _body(self, sock: socket.socket, number: int, data: bytes) -> None:
        """Read the body, of which ``data`` has come."""
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


if __name__ == "__main__":
    main(Readers, Plan)
