"""Slow clients, all in one separate process, each of which makes one transfer after the other at a limited rate.

``python -m benchmarks.harness.slow_clients JSON`` says ``ready`` once all of them have begun and one has moved data,
and ``ended`` when the first transfer ends after that. It goes on until the end of its standard input. Then it prints,
as JSON, the progress since it was ready: ``bytes``, how many transfers have ``ended``, how many of the clients have
moved anything (``served``), and of uploads the images that the service has taken (``complete``). The connections are
cut off. If an answer is wrong or ends early, the process fails: every byte of a download is compared. They do not check
the service's copy of an upload.
"""

import dataclasses
import json
import mmap
import queue
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.backends.base import HOST
from benchmarks.harness import http_client
from benchmarks.harness.children import Child, end_of_input

#: Bytes that a client reads or sends at a time.
PIECE = 128 << 10
#: Bytes that the kernel may keep for a client: not so many that one end would be done long before the other.
BUFFER = 256 << 10
#: Seconds by which a client may be late and still be faster than its rate for it, as the buffer lets it.
LATE = 0.25


@dataclasses.dataclass(frozen=True)
class Plan:
    """The transfers.

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


class Wrong(Exception):
    """The received data is not what was asked for."""


class Pace:
    """Holds a transfer to its rate, in bytes a second."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._due = time.monotonic()

    def after(self, count: int) -> None:
        """Wait until the rate allows more than the ``count`` bytes that have just been moved."""
        self._due = max(self._due, time.monotonic() - LATE) + count / self._rate
        time.sleep(max(0.0, self._due - time.monotonic()))


class Crowd:
    """The clients of this process, a thread each."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        with open(plan.file, "rb") as file:
            self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._url = f"http://{HOST}:{plan.port}{plan.path}"
        self._data = threading.Event()
        self._lock = threading.Lock()
        self._is_ready = False
        self._found: dict[str, Any] = {"bytes": 0, "ended": 0, "complete": []}
        self._served: set[int] = set()
        self._images = iter(plan.images or ())
        #: the end of all of it: None, or an error
        self._over: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def download(self, number: int) -> None:
        position, size, pace = 0, len(self._content), Pace(self._plan.rate)
        for data in http_client.pieces(self._url, PIECE, self._plan.source, BUFFER):
            if self._content[position : position + len(data)] != data:
                raise Wrong(f"other bytes than those of the image, between {position} and {position + len(data)}")
            position += len(data)
            self.count(number, len(data))
            if position < size:
                pace.after(len(data))
        if position < size:
            raise Wrong(f"a body ended after {position} of {size} bytes")

    def upload(self, number: int) -> None:
        with self._lock:
            image = next(self._images, None)
        if image is None:
            threading.Event().wait()
        length = {} if self._plan.chunked else {"Content-Length": str(len(self._content))}
        headers = {"Connection": "close", "Content-Type": "application/octet-stream", **length}
        http_client.put(self._url.format(image), self._paced(number), headers, self._plan.source, BUFFER)
        with self._lock:
            self._found["complete"].append(image)

    def _paced(self, number: int) -> Iterator[bytes]:
        pace = Pace(self._plan.rate)
        for start in range(0, len(self._content), PIECE):
            piece = self._content[start : start + PIECE]
            yield piece
            self.count(number, len(piece))
            pace.after(len(piece))

    def count(self, number: int, count: int) -> None:
        """A client has moved bytes."""
        self._data.set()
        with self._lock:
            if self._is_ready:
                self._found["bytes"] += count
                self._served.add(number)

    def go_on(self) -> dict[str, Any]:
        end_of_input(lambda: self._over.put(None))
        threading.Thread(target=self._begin, daemon=True).start()
        for number in range(self._plan.clients):
            threading.Thread(target=self._client, args=(number,), daemon=True).start()
        if error := self._over.get():
            raise error
        with self._lock:
            return {**self._found, "served": len(self._served)}

    def _begin(self) -> None:
        time.sleep(self._plan.ramp)
        self._data.wait()
        # No end is reported before.
        with self._lock:
            self._is_ready = True
            print("ready", flush=True)

    def _client(self, number: int) -> None:
        time.sleep(self._plan.ramp * number / self._plan.clients)
        try:
            while True:
                (self.download if self._plan.images is None else self.upload)(number)
                with self._lock:
                    if self._is_ready:
                        self._found["ended"] += 1
                        if self._found["ended"] == 1:
                            print("ended", flush=True)
        except Exception as error:
            self._over.put(error)


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


if __name__ == "__main__":
    print(json.dumps(Crowd(Plan(**json.loads(sys.argv[1]))).go_on()), flush=True)
