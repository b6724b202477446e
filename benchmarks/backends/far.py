"""A server far away: what is sent to a port goes on to another one, later and more slowly.

``python far.py PORT TO MILLISECONDS RATE``: an answer begins so many milliseconds later, and each
connection has so many bytes per second in that direction, 0 for no limit.
"""

import asyncio
import sys

HOST = "127.0.0.1"
#: Bytes that are handed on at the same time.
PIECE = 256 << 10
#: Seconds that a connection may be behind its rate.
LATE = 0.05


class Connection:
    """Both directions of a connection."""

    def __init__(self, to: int, latency: float, rate: int) -> None:
        self._to, self._latency, self._rate = to, latency, rate
        self._asked = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answers, requests = await asyncio.open_connection(HOST, self._to, limit=PIECE)
        except OSError:
            writer.close()
            return
        directions = [self._hand_on(reader, requests, False), self._hand_on(answers, writer, True)]
        tasks = [asyncio.ensure_future(each) for each in directions]
        # Either end may close: the other has no more to say then, or no reader.
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for each in (requests, writer):
            each.close()

    async def _hand_on(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, is_answer: bool) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while data := await source.read(PIECE):
            if not is_answer:
                self._asked = True
            elif self._asked:
                self._asked = False
                await asyncio.sleep(self._latency)
            if is_answer and self._rate:
                # A delay of this process itself is made up for.
                due = max(due, loop.time() - LATE) + len(data) / self._rate
                await asyncio.sleep(due - loop.time())
            sink.write(data)
            await sink.drain()


async def main(port: int, to: int, milliseconds: float, rate: int) -> None:
    server = await asyncio.start_server(
        lambda reader, writer: Connection(to, milliseconds / 1000, rate).serve(reader, writer), HOST, port, limit=PIECE
    )
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])))
