"""Cheap requests at a fixed rate, and how long each of them waits for its answer, from a separate process.

``python -m benchmarks.harness.other_requests URL`` says ``ready`` once one has been answered, begins when a line
comes, goes on until the end of its standard input, and prints what it has measured as JSON: ``milliseconds`` of each
request, and how many ``failed``. Requests start on time whether or not earlier ones have been answered: clients do not
wait for each other.
"""

import json
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from benchmarks.backends.base import HOST
from benchmarks.harness.children import Child, end_of_input
from benchmarks.harness.http_client import fetched
from benchmarks.harness.worker import percentile

#: requests per second
RATE = 20
#: The most that wait for an answer concurrently.
MOST = 2000


def _request(url: str) -> float:
    """One request on a separate connection; returns milliseconds. Raises an error if the answer is not a 200."""
    start = time.perf_counter()
    fetched(url, 64 << 10)
    return (time.perf_counter() - start) * 1000


def _go_on(url: str) -> dict[str, Any]:
    _request(url)
    print("ready", flush=True)
    sys.stdin.readline()
    ended = threading.Event()
    end_of_input(ended.set)
    requests: list[Future[float]] = []
    with ThreadPoolExecutor(MOST) as pool:
        begun = time.perf_counter()
        # One at least, however soon that is.
        while not (requests and ended.is_set()):
            requests.append(pool.submit(_request, url))
            ended.wait(max(0.0, begun + len(requests) / RATE - time.perf_counter()))
    measured = [each.result() for each in requests if each.exception() is None]
    return {"milliseconds": measured, "failed": len(requests) - len(measured)}


class Requests(Child):
    """The process, as a context manager; :meth:`stop` returns its figures.

    :param at_once: whether requests are sent from the beginning on, and not only when :meth:`begin` is called
    """

    def __init__(self, port: int, path: str, at_once: bool = True) -> None:
        super().__init__(__name__, f"http://{HOST}:{port}{path}", name="the requests")
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
    print(json.dumps(_go_on(sys.argv[1])))
