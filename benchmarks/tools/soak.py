"""A real glance-api under mixed load for a long time: uploads, downloads, ranges, clients that go away, reloads, ends.

    python -m benchmarks.tools.soak [--seconds S]

The seconds are shared by the releases. Half of those of each release are steady load, after which the service must
have no descriptor or thread more than at the beginning and not have grown; in the other half it is reloaded (SIGHUP,
glance 32 only) and ended (SIGTERM) and started again with transfers under way. Every transfer is compared with what
was sent. Exit status: 0 if nothing was lost, wrong or left behind, 1 otherwise.
"""

import contextlib
import http.client
import itertools
import json
import math
import os
import random
import signal
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.backends.base import BackendError
from benchmarks.backends.glance import RELEASES, Service
from benchmarks.backends.glance_api import ELSEWHERE, Api
from fastio import terminal
from fastio.arguments import Parser

KIB, MIB = 1 << 10, 1 << 20
#: Load threads; each does one operation after the other.
CLIENTS = 6
#: The most images that the service has.
IMAGES = 16
LARGEST = 12 * MIB
SIZES = (0, 1, 997, 64 * KIB, 64 * KIB + 1, MIB - 1, MIB, 3 * MIB + 17, LARGEST)
#: The fewest seconds.
LEAST = 15
#: Seconds between two looks at the idle service, and between two disturbances.
STEADY_TURN, DISTURBED_TURN = 4.0, 6.0
#: Seconds for an upload that was reset to be forgotten.
PATIENCE = 60.0
#: Seconds for a service to end. uWSGI kills a worker with threads that hangs as it ends after 60 s (unbit/uwsgi#1969).
#: With the eventlet server, stock too, the lock of oslo.log's handlers is a pipe that all workers share
#: (oslo_log.pipe_mutex): if SIGTERM ends one while it writes a line, no process gives the lock back, and the first one
#: waits for it for ever. That is counted as an end by force.
ENDING = 90.0
#: Allowed growth of a process's memory from the first third of its samples to the last, however long it runs: the
#: allocator keeps an arena for each thread, and each may hold some chunks.
GROWTH = 48 * MIB
#: Allowed difference between last and first looks for each worker; a leak of one in some transfers is far above it.
#: Sockets of clients that went away stay open until the garbage collector runs, under eventlet in stock too. A pool
#: starts a thread when none is idle.
SLACK = {"descriptors": 8, "threads": 4}
#: Workers and threads: more than one worker, and enough threads for all clients.
AT_WORK: dict[str, dict[str, Any]] = {"glance-32": {"workers": 2}, "glance-33": {"threads": 8}}

#: A request or several of a client, by chance.
Operation = Callable[[random.Random], None]


class ContentError(Exception):
    """The service gave something else than what was sent."""


class Sample(NamedTuple):
    """The processes of the idle service."""

    #: without those of the database, of whose connections glance keeps a pool
    descriptors: int
    threads: int
    #: bytes, by process
    resident: dict[int, int]


class Soak:
    """The load on one service, and what it does to it."""

    def __init__(self, service: Service) -> None:
        self._service = service
        # Under eventlet images are sent to a client whose address is not the service's in another way.
        self._apis = [Api(service.http_port, source=source) for source in ("", ELSEWHERE)]
        self._random = random.Random(1)
        #: sent data, by image
        self.images: dict[str, bytes] = {}
        #: how many are at work with each of them
        self._busy: Counter[str] = Counter()
        self._lock = threading.Lock()
        #: the disturbance that is going on, when the last one ended, and how often the service has been ended
        self._disturbed, self._calm_since, self._ended = "", 0.0, 0
        #: operations and disturbances, requests without an answer or with half of one because of the latter, and bytes
        #: that are right
        self.done: Counter[str] = Counter()
        self.faults: list[str] = []
        self.samples: list[Sample] = []
        # uWSGI's own HTTP ends each connection after one answer, and does not announce it.
        self._downloads = 3 if service.eventlet else 1
        self.operations: dict[Operation, int] = {
            self.upload: 6, self.download: 7, self.abort_download: 2, self.abort_upload: 1, self.delete: 3,
        }  # fmt: skip

    # The clients.

    @contextlib.contextmanager
    def _load(self) -> Iterator[None]:
        """Clients at work; at the end the requests under way end."""
        over = threading.Event()

        def client(seed: int) -> None:
            chance = random.Random(seed)
            while not over.is_set():
                (operation,) = chance.choices([*self.operations], [*self.operations.values()])
                self.do(operation, chance)

        with ThreadPoolExecutor(CLIENTS) as pool:
            clients = [pool.submit(client, self._random.randrange(1 << 30)) for _ in range(CLIENTS)]
            try:
                yield
            finally:
                over.set()
        for each in clients:
            each.result()

    def do(self, operation: Operation, chance: random.Random) -> None:
        """Carry out an operation, and count what became of it; nothing without an image for it, or room for one."""
        name = operation.__name__
        started, disturbed, ended = time.monotonic(), self._disturbed, self._ended
        try:
            operation(chance)
        except LookupError:
            return
        except ContentError as error:
            return self.fault(f"{name}: {error}")
        except (OSError, RuntimeError, ValueError, http.client.HTTPException) as error:
            if not (disturbed or self._disturbed or started < self._calm_since):
                return self.fault(f"{name}: {type(error).__name__}: {error}")
            # A reload lets the requests end that are under way.
            if isinstance(error, http.client.IncompleteRead) and disturbed != "end" and ended == self._ended:
                return self.fault(f"{name}: cut off by a reload")
            name = f"{name}, cut off"
            # The service is starting.
            time.sleep(0.2)
        self._count(name)

    def _count(self, what: str, number: int = 1) -> None:
        with self._lock:
            self.done[what] += number

    def fault(self, text: str) -> None:
        self.faults.append(text)
        print(f"  fault: {text}", flush=True)

    @contextlib.contextmanager
    def _some_image(self, chance: random.Random) -> Iterator[tuple[str, bytes]]:
        """An image, which is not deleted meanwhile, and its data.

        :raises LookupError: if there is none
        """
        with self._lock:
            image, data = chance.choice([*self.images.items()])
            self._busy[image] += 1
        try:
            yield image, data
        finally:
            with self._lock:
                self._busy[image] -= 1

    def upload(self, chance: random.Random) -> None:
        with self._lock:
            if len(self.images) >= IMAGES:
                raise LookupError
            data = self._random.randbytes(chance.choice((*SIZES, *[chance.randrange(LARGEST)] * 20)))
        image = self._apis[0].create()
        # uWSGI takes no chunk of 1 MiB by default.
        piece = chance.choice((1000, 64 * KIB, MIB - KIB))
        pieces = (data[start : start + piece] for start in range(0, len(data), piece))
        answer = self._apis[0].upload(image, chance.choice((data, data, pieces)))
        if answer.status != 204:
            raise ContentError(f"upload of {len(data)} bytes: {answer.status} {answer.body[:200]!r}")
        shown = self._apis[0].show(image)
        if (shown["status"], shown["size"]) != ("active", len(data)):
            raise ContentError(f"{len(data)} bytes were sent, and taken as {shown['status']}, {shown['size']}")
        with self._lock:
            self.images[image] = data

    def download(self, chance: random.Random) -> None:
        """Whole images and ranges, on a connection: what follows a body must be the next answer's head."""
        with contextlib.closing(chance.choice(self._apis).connect()) as connection:
            for _ in range(self._downloads):
                with self._some_image(chance) as (image, data):
                    start = chance.randrange(len(data)) if data and chance.random() < 0.4 else 0
                    end = chance.randrange(start, len(data)) + 1 if start else len(data)
                    self._check(connection, image, data, start, end)

    def _check(
        self, connection: http.client.HTTPConnection, image: str, data: bytes, start: int = 0, end: int | None = None
    ) -> None:
        """Download the bytes from ``start`` to ``end`` and compare them with what was sent."""
        expected = data[start:end]
        headers = {} if expected == data else {"Range": f"bytes={start}-{start + len(expected) - 1}"}
        connection.request("GET", f"/v2/images/{image}/file", headers=headers)
        response = connection.getresponse()
        if response.status != (206 if headers else 200):
            raise ContentError(f"download of {len(expected)} bytes: {response.status}")
        cut_off = None
        try:
            body = response.read()
        except http.client.IncompleteRead as error:
            cut_off, body = error, error.partial
        if len(body) < len(expected) and response.getheader("Content-Length") is None:
            # uWSGI can be set to remove the length, without which a body that is cut off cannot be recognised.
            cut_off = http.client.IncompleteRead(body)
        if body != (expected[: len(body)] if cut_off else expected):
            raise ContentError(f"{len(body)} bytes came, not the {len(expected)} that were sent")
        if cut_off:
            raise cut_off
        self._count("bytes", len(expected))

    def abort_download(self, chance: random.Random) -> None:
        with self._some_image(chance) as (image, data):
            chance.choice(self._apis).abort_download(image, chance.randrange(len(data) or 1))

    def abort_upload(self, chance: random.Random) -> None:
        image = self._apis[0].create()
        size = chance.randrange(LARGEST)
        self._apis[0].abort_upload(image, bytes(size), size + chance.randrange(1, MIB))
        status, deadline = "saving", time.monotonic() + PATIENCE
        while status == "saving" and time.monotonic() < deadline:
            time.sleep(0.1)
            status = self._apis[0].show(image)["status"]
        if status != "queued":
            raise ContentError(f"an upload that was reset is {status}")
        self._apis[0].delete(image)

    def delete(self, chance: random.Random) -> None:
        with self._lock:
            if len(self.images) < IMAGES // 2:
                raise LookupError
            image = chance.choice([image for image in self.images if not self._busy[image]])
            del self.images[image]
        status = self._apis[0].delete(image)
        if status != 204:
            raise ContentError(f"an image could not be deleted: {status}")

    # Actions on the service.

    def run(self, seconds: float) -> None:
        self._steady(seconds / 2)
        self._disturb(seconds / 2)
        self.verify_all()
        self.judge()

    def _steady(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        # The first turn warms it up: what is imported and pooled at the first use is no leak.
        turn = seconds / 4
        while time.monotonic() < deadline or len(self.samples) < 3:
            with self._load():
                time.sleep(turn)
            time.sleep(1)
            self.samples.append(self._sample())
            turn = STEADY_TURN

    def _disturb(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        kinds = [self._reload, self.end_and_start] if self._service.eventlet else [self.end_and_start]
        with self._load():
            for number, disturb in enumerate(itertools.cycle(kinds), 1):
                time.sleep(DISTURBED_TURN)
                disturb()
                # Each of them at least once.
                if time.monotonic() > deadline and number >= len(kinds):
                    break
            time.sleep(1)

    def _reload(self) -> None:
        before = set(self._service.workers())
        self._disturbed = "reload"
        self._service.signal(signal.SIGHUP)
        self._service.wait(lambda: not before & set(self._service.workers()), "new workers alone, after a reload,")
        self._calm("reloads")

    def end_and_start(self) -> None:
        self._disturbed = "end"
        self._ended += 1
        self._service.expect_end()
        self._service.signal(signal.SIGTERM)
        deadline = time.monotonic() + ENDING
        while (pids := self._service.pids()) and time.monotonic() < deadline:
            time.sleep(0.1)
        # One process of an eventlet server is upstream's fault.
        if len(pids) > 1 or pids and not self._service.eventlet:
            self.fault(f"{ENDING:g} s after SIGTERM there are processes left")
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._service.wait(lambda: not self._service.pids(), "the end")
        self._service.start_again()
        self._calm("ends by force" if pids else "ends")

    def _calm(self, count: str) -> None:
        self._calm_since = time.monotonic()
        self._disturbed = ""
        self._count(count)

    def verify_all(self) -> None:
        """Every image that the service has taken is there, whatever happened since."""
        for image, data in self.images.items():
            try:
                with contextlib.closing(self._apis[0].connect()) as connection:
                    self._check(connection, image, data)
            except (ContentError, OSError, http.client.HTTPException) as error:
                self.fault(f"at the end: {type(error).__name__}: {error}")

    # Leftovers.

    def _sample(self) -> Sample:
        descriptors, threads, resident = 0, 0, dict[int, int]()
        for pid in self._service.pids():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found = Path(f"/proc/{pid}/fd").iterdir()
                descriptors += sum("glance.sqlite" not in os.path.realpath(each) for each in found)
                threads += len(os.listdir(f"/proc/{pid}/task"))
                pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                resident[pid] = pages * os.sysconf("SC_PAGE_SIZE")
        return Sample(descriptors, threads, resident)

    def judge(self) -> None:
        samples, done, service = self.samples, self.done, self._service
        third = max(1, len(samples) // 3)
        for name, slack in SLACK.items():
            counts = [getattr(sample, name) for sample in samples]
            # The least of the last looks: a connection may still be about to close at one of them.
            if min(counts[-third:]) > max(counts[:-third]) + slack * service.chosen["workers"]:
                self.fault(f"{name} left behind: {counts}")
        for pid in samples[0].resident:
            sizes = [sample.resident[pid] for sample in samples if pid in sample.resident]
            if statistics.median(sizes[-third:]) - statistics.median(sizes[:third]) > GROWTH:
                self.fault(f"process {pid} has grown: {[size // MIB for size in sizes]} MiB")
        if not done["download"] or not done["upload"]:
            self.fault("no transfer has succeeded")


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    about = (__doc__ or "").splitlines()[0]
    parser = Parser(prog="python -m benchmarks.tools.soak", description=about)
    parser.add_argument("--seconds", type=float, default=120.0, help="of all releases together (%(default)s)")
    options = parser.parse_args(arguments)
    if not LEAST <= options.seconds < math.inf:
        parser.error(f"--seconds {options.seconds:g}: at least {LEAST}, or there is no time for anything")
    failed = False
    for name, release in RELEASES.items():
        print(name, flush=True)
        try:
            with release(fastio="on", **AT_WORK[name]) as service:
                soak = Soak(service)
                soak.run(options.seconds / len(RELEASES))
                print(json.dumps(dict(sorted(soak.done.items()))), flush=True)
                if soak.faults:
                    raise BackendError("see the log")
        except BackendError as error:
            print(error, file=sys.stderr)
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
