"""A network path of a given rate, on one machine: what comes in at one port goes out to another, no faster than that.

It is a stand-in for a slow network, not a model of one: there is no loss and no delay beyond what the rate makes.
"""

import asyncio
import contextlib
import queue
import socket
import struct
import threading
from collections.abc import Callable, Iterator

#: Bytes that are taken at once, and seconds of the rate that may be sent at once after a pause.
PIECE = 64 << 10
BURST = 0.05


@contextlib.contextmanager
def slowed(host: str, port: int, rate: float) -> Iterator[str]:
    """Carry connections to ``host`` and ``port``, in a thread; yields the address where they come in.

    :param rate: bytes in a second, of all connections together, in each direction
    """
    begun: queue.Queue[tuple[str, Callable[[], object]] | OSError] = queue.Queue()

    async def serve() -> None:
        path, stop, loop = _Path(host, port, rate), asyncio.Event(), asyncio.get_running_loop()
        try:
            server = await asyncio.start_server(path.carry, "127.0.0.1", 0, limit=PIECE)
        except OSError as error:
            begun.put(error)
            return
        address, number = server.sockets[0].getsockname()[:2]
        begun.put((f"{address}:{number}", lambda: loop.call_soon_threadsafe(stop.set)))
        await stop.wait()
        server.close()

    thread = threading.Thread(target=asyncio.run, args=[serve()])
    thread.start()
    found = begun.get()
    if isinstance(found, OSError):
        raise found
    address, end = found
    try:
        yield address
    finally:
        end()
        thread.join()


class _Bucket:
    """Gives bytes at a rate; who comes later waits longer."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._free_at = 0.0

    async def take(self, size: int) -> None:
        now = asyncio.get_running_loop().time()
        self._free_at = max(self._free_at, now - BURST) + size / self._rate
        if self._free_at > now:
            await asyncio.sleep(self._free_at - now)


class _Path:
    def __init__(self, host: str, port: int, rate: float) -> None:
        self._to = host, port
        self._there, self._back = _Bucket(rate), _Bucket(rate)

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
