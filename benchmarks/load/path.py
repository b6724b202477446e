"""A network path of a given rate, on one machine: what comes in at one port goes out to another, no faster than that.

``python -m benchmarks.load path --to HOST:PORT --rate 50MiB`` listens, and says where. It is a stand-in for a slow
network, not a model of one: there is no loss and no delay beyond what the rate makes.
"""

import asyncio
import contextlib
import socket
import struct

#: Bytes that are taken at once, and seconds of the rate that may be sent at once after a pause.
PIECE = 64 << 10
BURST = 0.05


class _Bucket:
    """Gives bytes at a rate; who comes later waits longer."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._free_at = 0.0

    async def take(self, size: int) -> None:
        if not self._rate:
            return
        now = asyncio.get_running_loop().time()
        self._free_at = max(self._free_at, now - BURST) + size / self._rate
        if self._free_at > now:
            await asyncio.sleep(self._free_at - now)


class Path:
    """Carries connections to ``host`` and ``port``.

    :param rate: bytes in a second, of all connections together, in each direction; 0: any
    """

    def __init__(self, host: str, port: int, rate: float) -> None:
        self._to = host, port
        self._there, self._back = _Bucket(rate), _Bucket(rate)

    async def serve(self, host: str = "127.0.0.1", port: int = 0) -> asyncio.Server:
        """Listen, on a free port if none is given."""
        return await asyncio.start_server(self._carry, host, port, limit=PIECE)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._to, limit=PIECE)
            writers.append(far_writer)
            for each in writers:
                # No more data may wait in the path than a network would hold.
                each.transport.set_write_buffer_limits(PIECE)
            await asyncio.gather(
                self._pump(reader, far_writer, self._there), self._pump(far_reader, writer, self._back)
            )
        except OSError:
            _reset(writer)
        finally:
            for each in writers:
                each.close()

    @staticmethod
    async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, bucket: _Bucket) -> None:
        while data := await reader.read(PIECE):
            await bucket.take(len(data))
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def serve(listen: tuple[str, int], to: tuple[str, int], rate: float) -> None:
    """Be the path until the process is ended; prints the address that it listens to."""

    async def main() -> None:
        server = await Path(*to, rate).serve(*listen)
        host, port = server.sockets[0].getsockname()[:2]
        print(f"{host}:{port}", flush=True)
        await server.serve_forever()

    asyncio.run(main())
