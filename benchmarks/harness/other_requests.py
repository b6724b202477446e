"""Cheap requests at a fixed rate, and how long each of them waits for its answer, from a process of its own.

``python -m benchmarks.harness.other_requests PORT PATH`` says ``ready`` once one has been answered, begins when a
line comes, goes on until the end of its standard input, and prints what it has measured as JSON: ``milliseconds`` of
each request, and how many ``failed``. Requests start on time whether or not earlier ones have been answered: clients do
not wait for each other.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from typing import Any

from benchmarks.backends.base import HOST
from benchmarks.harness.children import Child
from benchmarks.harness.worker import percentile

#: requests per second
RATE = 20
#: seconds that an answer may take
PATIENCE = 60


async def _request(port: int, path: str) -> float:
    """One request on a connection of its own; returns milliseconds. Raises OSError if the answer is not a 200."""
    start = time.perf_counter()
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {HOST}:{port}\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
    finally:
        writer.close()
    if b" 200 " not in answer.partition(b"\r\n")[0]:
        raise OSError(f"no 200 but {answer[:80]!r}")
    return (time.perf_counter() - start) * 1000


async def _go_on(port: int, path: str) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    await _request(port, path)
    print("ready", flush=True)
    # There is nothing else to do meanwhile.
    sys.stdin.readline()
    # No more data ever comes, so it is readable only at its end.
    ended = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), ended.set)
    begun = time.perf_counter()
    requests: list[asyncio.Task[float]] = []
    while not ended.is_set():
        requests.append(loop.create_task(asyncio.wait_for(_request(port, path), PATIENCE)))
        pause = begun + len(requests) / RATE - time.perf_counter()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(ended.wait(), max(0, pause))
    loop.remove_reader(sys.stdin.fileno())
    answers = await asyncio.gather(*requests, return_exceptions=True)
    measured = [answer for answer in answers if isinstance(answer, float)]
    return {"milliseconds": measured, "failed": len(answers) - len(measured)}


class Requests(Child):
    """The process, as a context manager; :meth:`stop` returns its figures.

    :param at_once: whether requests are sent from the beginning on, and not only when :meth:`begin` is called
    """

    def __init__(self, port: int, path: str, at_once: bool = True) -> None:
        super().__init__(__name__, str(port), path, name="the requests")
        self.started()
        if at_once:
            self.begin()

    def begin(self) -> None:
        """Have it send its requests."""
        self.write()

    def stop(self) -> dict[str, float]:
        """End it; returns ``p50_ms``, ``p99_ms`` and ``worst_ms`` of its requests, and how many they are.

        :raises RuntimeError: if one of them was not answered
        """
        found = json.loads(self.end())
        waited = found["milliseconds"]
        if found["failed"] or not waited:
            raise RuntimeError(f"{found['failed']} of {found['failed'] + len(waited)} requests were not answered")
        return {
            "p50_ms": percentile(waited, 0.50),
            "p99_ms": percentile(waited, 0.99),
            "worst_ms": max(waited),
            "requests": len(waited),
        }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_go_on(int(sys.argv[1]), sys.argv[2]))))
