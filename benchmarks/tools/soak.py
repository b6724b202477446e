"""A real glance-api under mixed load for a long time: uploads, downloads, ranges, clients that go away, reloads, ends.

    python -m benchmarks.tools.soak [--seconds S] [--release NAME] [--slow N] [--stock]

The seconds are shared by the releases. Half of those of each release are steady load, after which the service must
have no descriptor, thread or greenlet more than at the beginning and not have grown; in the other half it is reloaded
(SIGHUP, glance 32 only) and ended (SIGTERM) and started again with transfers under way. Every transfer is compared
with the SHA-512 of what was sent. Exit status: 0 if nothing was lost, wrong or left behind, 1 otherwise.

With ``--slow N`` there are N more clients, which download only: most of them slowly, some at full speed, some a range,
and some go away half-way. The service is then glance 33 as it is shipped (4 processes of one thread), unless
``--release`` names another. fastio also has the patch ``glance_slow_clients``, and it is a fault if that has sent
nothing. How long cheap requests wait meanwhile is reported, and not judged; it is a fault if one gets no answer.
"""

import contextlib
import fcntl
import http.client
import itertools
import json
import math
import os
import random
import re
import signal
import statistics
import struct
import sys
import termios
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.backends.base import BackendError
from benchmarks.backends.glance import AS_SHIPPED
from benchmarks.backends.glance_api import ELSEWHERE, Api, reset, sha512
from benchmarks.backends.glance_service import RELEASES, Service
from benchmarks.harness.other_requests import Requests, figures
from fastio import terminal
from fastio.arguments import Parser

KIB, MIB = 1 << 10, 1 << 20
#: Load threads; each does one operation after the other.
CLIENTS = 6
#: Images that are kept at a time.
KEPT = 16
LARGEST = 12 * MIB
#: The fewest seconds.
LEAST = 15
#: Seconds between two looks at the idle service, and between two disturbances.
STEADY_TURN, DISTURBED_TURN = 4.0, 6.0
#: Seconds for requests under way to end, and for a service to end or to start.
PATIENCE = 60.0
#: Seconds for a service to end. Two faults of upstream, stock too, are counted as ends by force. uWSGI kills a worker
#: with threads that hangs as it ends after 60 s (unbit/uwsgi#1969). With the eventlet server the lock of oslo.log's
#: handlers is a pipe that all workers share (oslo_log.pipe_mutex): if SIGTERM ends one while it writes a line, nobody
#: gives the lock back, and the first process waits for it for ever.
ENDING = 90.0
MERCILESS = "NO MERCY"
#: What the memory of a process may grow by from the first third of its samples to the last, however long it runs: the
#: allocator keeps an arena for each thread, and each may hold some chunks.
GROWTH = 48 * MIB
#: Sockets by which the last looks may exceed the first ones, in all processes together. With the eventlet server, stock
#: too, what served a connection refers to itself; where the client went away its socket, of a connection that is no
#: more, stays open until Python's garbage collector comes by. Over time a leak of one in some transfers is far more.
LINGERING = 8
#: Threads by which they may, for each worker: a pool starts one when it has none that is idle, and on a busy machine
#: the first turn does not fill it. A leak of one in some transfers is far more as well.
POOLED = 4
#: Greenlets by which they may, with the eventlet server: a worker that reports may be in the middle of an answer, and
#: on a busy machine what served the last request may not have ended yet. A leak is far more here, too.
ANSWERING = 4

#: The patch for slow clients, and how its lines in the log begin.
SLOW_CLIENTS, GIVEN_AWAY = "glance_slow_clients", "fastio: GET /"
#: The most slow clients: each has a thread and a connection here, and all that one worker may get are below its limit.
MOST_SLOW = 500
#: What the cheap requests beside them ask for.
CHEAP = "/v2/schemas/image"
#: Images that the slow clients have for themselves, so that there are others that nobody reads and that can be deleted.
LASTING = (LARGEST, 3 * MIB + 17, 7 * MIB)
#: Bytes that a slow client reads at a time, and the least and the most seconds until it reads on: 1 MB/s or so, which
#: ends before uWSGI kills a worker that is to end (``worker-reload-mercy``, 60 s).
SLOWLY, LEISURE = 64 * KIB, (0.02, 0.12)

#: Workers and threads: more than one worker, and enough threads for all clients.
AT_WORK: dict[str, dict[str, Any]] = {"glance-32": {"workers": 2}, "glance-33": {"threads": 8}}

SIZES = (0, 1, 997, 64 * KIB, 64 * KIB + 1, MIB - 1, MIB, 3 * MIB + 17, LARGEST)


@dataclass(frozen=True)
class Image:
    """One image that the service has taken, and what was sent."""

    identifier: str
    data: bytes
    sha512: str

    @property
    def size(self) -> int:
        return len(self.data)


def content(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


#: What a client does, by chance.
Operation = Callable[[random.Random], None]


class Wrong(Exception):
    """The service gave something else than what was sent."""


class Nothing(Exception):
    """There is no image to do it with, or no room for another."""


@dataclass
class Sample:
    """The processes of the idle service."""

    #: by what they are; without those of the database, of whose connections glance keeps a pool
    open_files: Counter[str]
    threads: int
    greenlets: int
    #: bytes, by process
    resident: dict[int, int]

    @property
    def descriptors(self) -> int:
        return sum(self.open_files.values())


@dataclass
class Tally:
    """What happened."""

    done: Counter[str] = field(default_factory=Counter)
    #: requests that got no answer because the service was reloaded or ended meanwhile
    unanswered: Counter[str] = field(default_factory=Counter)
    #: downloads whose beginning was right, cut off by the end of the service, or by a reload that does so
    cut_off: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    faults: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    #: milliseconds of each of the cheap requests beside the slow clients
    waited: list[float] = field(default_factory=list)


class Soak:
    """The load on one service, and what it does to it.

    :param slow: clients beside the usual ones, most of them slow
    """

    def __init__(self, service: Service, seed: int, slow: int = 0) -> None:
        self._service = service
        self._api = Api(service.http_port, timeout=PATIENCE)
        #: of a client whose address is not the service's: under eventlet images are sent to it in another way
        self._elsewhere = Api(service.http_port, timeout=PATIENCE, source=ELSEWHERE)
        self._seeds = itertools.count(seed * 1_000_000)
        self._random = random.Random(seed)
        self._images: dict[str, Image] = {}
        #: those of the slow clients, which nobody deletes
        self._lasting: list[Image] = []
        #: how many are at work with each of them
        self._busy: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._idle = threading.Condition()
        self._running = 0
        self._paused = True
        self._over = False
        #: the disturbance that is going on, and when the last one ended
        self._disturbed = ""
        self._calm_since = 0.0
        #: how often the service has been ended
        self._ended = 0
        self.tally = Tally()
        self._slow = slow
        # uWSGI's own HTTP ends each connection after one answer, and does not say so.
        keeps = service.eventlet
        usual = (
            (self._upload, 4), (self._chunked_upload, 2), (self._download, 5), (self._range, 3),
            (self._one_connection, 2 if keeps else 0), (self._slow_download, 1), (self._abort_download, 2),
            (self._abort_upload, 1), (self._delete, 3),
        )  # fmt: skip
        slowly = ((self._slow_client, 5), (self._slow_range, 2), (self._fast_client, 1), (self._slow_abort, 2))
        self._threads = [
            threading.Thread(target=self._client, args=(number, usual if number < CLIENTS else slowly))
            for number in range(CLIENTS + slow)
        ]

    # The clients.

    def _client(self, number: int, operations: Sequence[tuple[Operation, int]]) -> None:
        chance = random.Random(number)
        choices, weights = zip(*operations, strict=True)
        while True:
            with self._idle:
                self._idle.wait_for(lambda: self._over or not self._paused)
                if self._over:
                    return
                self._running += 1
            try:
                self._do(chance.choices(choices, weights)[0], chance)
            finally:
                with self._idle:
                    self._running -= 1
                    self._idle.notify_all()

    def _do(self, operation: Operation, chance: random.Random) -> None:
        name = operation.__name__.strip("_")
        started, disturbed, ended = time.monotonic(), self._disturbed, self._ended
        counter = self.tally.done
        try:
            operation(chance)
        except Nothing:
            name = "nothing"
        except Wrong as error:
            self._fault(f"{name}: {error}")
            return
        except (OSError, http.client.HTTPException) as error:
            excused = disturbed or self._disturbed or started < self._calm_since
            if not excused:
                self._fault(f"{name}: {type(error).__name__}: {error}")
                return
            # Also cut off: http.client says that a body has ended too early by IncompleteRead.
            cut = isinstance(error, http.client.IncompleteRead)
            if cut and disturbed != "end" and ended == self._ended and self._service.reload_spares_requests:
                self._fault(f"{name}: cut off by a reload")
                return
            counter = self.tally.cut_off if cut else self.tally.unanswered
            # The service is starting.
            time.sleep(0.2)
        with self._lock:
            counter[name] += 1

    def _fault(self, text: str) -> None:
        with self._lock:
            self.tally.faults.append(text)
        print(f"  fault: {text}", flush=True)

    def _moved(self, count: int) -> None:
        with self._lock:
            self.tally.bytes += count

    @contextlib.contextmanager
    def _some_image(self, chance: random.Random, empty: bool = False) -> Iterator[Image]:
        """An image that nobody deletes meanwhile; with data, unless it may be an ``empty`` one.

        :raises Nothing: if there is none
        """
        with self._lock:
            image = chance.choice(list(self._images.values())) if self._images else None
            if image is None or not (image.size or empty):
                raise Nothing
            self._busy[image.identifier] += 1
        try:
            yield image
        finally:
            with self._lock:
                self._busy[image.identifier] -= 1

    def _upload(self, chance: random.Random, chunked: bool = False) -> None:
        with self._lock:
            if len(self._images) >= KEPT:
                raise Nothing
        size = chance.choice(SIZES) if chance.random() < 0.3 else chance.randrange(LARGEST)
        image = self._made(chance, size, chunked)
        with self._lock:
            self._images[image.identifier] = image
        self._moved(size)

    def _made(self, chance: random.Random, size: int, chunked: bool = False) -> Image:
        """A new image that the service has taken."""
        with self._lock:
            seed = next(self._seeds)
        data = content(seed, size)
        image = Image(self._api.create(), data, sha512(data))
        # uWSGI takes no chunk of 1 MiB, unless it is told to.
        piece = chance.choice((1000, 64 * KIB, MIB - KIB))
        pieces = (data[start : start + piece] for start in range(0, size, piece))
        answer = self._api.upload(image.identifier, pieces if chunked else data)
        if answer.status != 204:
            raise Wrong(f"upload of {size} bytes: {answer.status} {answer.body[:200]!r}")
        shown = self._api.show(image.identifier)
        found = shown["status"], shown["size"], shown["os_hash_value"]
        if found != ("active", size, image.sha512):
            raise Wrong(f"{size} bytes were sent, and taken as {found}")
        return image

    def _chunked_upload(self, chance: random.Random) -> None:
        self._upload(chance, chunked=True)

    def _from(self, chance: random.Random) -> Api:
        return chance.choice((self._api, self._elsewhere))

    def _download(self, chance: random.Random) -> None:
        with self._some_image(chance, empty=True) as image:
            self._check_alone(self._from(chance), image, 0, image.size)

    def _range(self, chance: random.Random) -> None:
        with self._some_image(chance) as image:
            start = chance.randrange(image.size)
            self._check_alone(self._from(chance), image, start, chance.randrange(start, image.size) + 1)

    def _one_connection(self, chance: random.Random) -> None:
        """Several downloads on a connection: what follows a body must be the next answer's head."""
        with contextlib.closing(self._from(chance).connect()) as connection:
            for _ in range(3):
                with self._some_image(chance) as image:
                    self._check(connection, image, 0, image.size)
                    self._check(connection, image, image.size // 3, image.size // 3 + 1)

    def _check_alone(self, api: Api, image: Image, start: int, end: int) -> None:
        with contextlib.closing(api.connect()) as connection:
            self._check(connection, image, start, end)

    def _check(self, connection: http.client.HTTPConnection, image: Image, start: int, end: int) -> None:
        """Download the bytes from ``start`` to ``end`` and compare them with what was sent."""
        whole = (start, end) == (0, image.size)
        headers = {} if whole else {"Range": f"bytes={start}-{end - 1}"}
        expected = image.data[start:end]
        connection.request("GET", f"/v2/images/{image.identifier}/file", headers=headers)
        response = connection.getresponse()
        if response.status != (200 if whole else 206):
            raise Wrong(f"download of {end - start} bytes: {response.status}")
        try:
            body = response.read()
        except http.client.IncompleteRead as error:
            if not expected.startswith(error.partial):
                raise Wrong(f"the first {len(error.partial)} of {len(expected)} bytes are wrong") from error
            raise
        if len(body) < len(expected) and expected.startswith(body) and response.getheader("Content-Length") is None:
            # uWSGI may be told to take the length away; a body that is cut off has nothing else to tell it by.
            raise http.client.IncompleteRead(body)
        if sha512(body) != sha512(expected):
            raise Wrong(f"{len(body)} bytes came, not the {len(expected)} that were sent")
        self._moved(len(expected))

    def _slow_download(self, chance: random.Random) -> None:
        with self._some_image(chance) as image:
            body = bytearray()
            with self._from(chance).started_download(image.identifier) as response:
                while piece := response.read(MIB):
                    body += piece
                    time.sleep(0.05)
            if len(body) < image.size and image.data.startswith(body):
                raise http.client.IncompleteRead(bytes(body))
            if sha512(body) != image.sha512:
                raise Wrong(f"{len(body)} bytes came slowly, not the {image.size} that were sent")
            self._moved(image.size)

    def _slow_client(self, chance: random.Random) -> None:
        image = chance.choice(self._lasting)
        self._read_slowly(chance, image, 0, image.size)

    def _slow_range(self, chance: random.Random) -> None:
        image = chance.choice(self._lasting)
        start = chance.randrange(image.size)
        self._read_slowly(chance, image, start, chance.randrange(start, image.size) + 1)

    def _fast_client(self, chance: random.Random) -> None:
        image = chance.choice(self._lasting)
        self._check_alone(self._from(chance), image, 0, image.size)

    def _slow_abort(self, chance: random.Random) -> None:
        image = chance.choice(self._lasting)
        self._read_slowly(chance, image, 0, image.size, chance.randrange(image.size))

    def _read_slowly(self, chance: random.Random, image: Image, start: int, end: int, abort: int | None = None) -> None:
        """Download the bytes from ``start`` to ``end``, and compare each piece as it comes.

        :param abort: bytes after which the connection is reset
        """
        whole = (start, end) == (0, image.size)
        headers = {} if whole else {"Range": f"bytes={start}-{end - 1}"}
        position = start
        with self._from(chance).started_download(image.identifier, headers=headers) as response:
            if response.status != (200 if whole else 206):
                raise Wrong(f"slow download of {end - start} bytes: {response.status}")
            while position < end:
                if abort is not None and position - start >= abort:
                    reset(response)
                    return
                piece = response.read(min(SLOWLY, end - position))
                if not piece:
                    raise http.client.IncompleteRead(b"", end - position)
                if piece != image.data[position : position + len(piece)]:
                    raise Wrong(f"slow download: other bytes than were sent between {position} and {end}")
                position += len(piece)
                if not self._paused:
                    time.sleep(chance.uniform(*LEISURE))
        self._moved(end - start)

    def _abort_download(self, chance: random.Random) -> None:
        with self._some_image(chance) as image:
            self._from(chance).abort_download(image.identifier, chance.randrange(image.size))

    def _abort_upload(self, chance: random.Random) -> None:
        identifier = self._api.create()
        size = chance.randrange(LARGEST)
        self._api.abort_upload(identifier, content(0, size), size + chance.randrange(1, MIB))
        seen = [""]

        def settled() -> bool:
            # One look: on a busy machine the service may begin to save it between two.
            seen[0] = self._api.show(identifier)["status"]
            return seen[0] != "saving"

        if not self._eventually(settled):
            raise Wrong(f"an upload that was reset is still being saved after {PATIENCE:g} s")
        if seen[0] != "queued":
            raise Wrong(f"an upload that was reset has become {seen[0]}")
        self._api.delete(identifier)

    def _delete(self, chance: random.Random) -> None:
        with self._lock:
            free = [identifier for identifier in self._images if not self._busy[identifier]]
            if len(self._images) < KEPT // 2 or not free:
                raise Nothing
            identifier = chance.choice(free)
            del self._images[identifier]
        status = self._api.delete(identifier)
        if status != 204:
            raise Wrong(f"an image could not be deleted: {status}")

    # Actions on the service.

    def prepare(self) -> None:
        """Make the images of the slow clients."""
        if self._slow:
            self._lasting = [self._made(self._random, size) for size in LASTING]

    def run(self, seconds: float) -> None:
        self.prepare()
        for thread in self._threads:
            thread.start()
        try:
            self._steady(seconds / 2)
            self._disturb(seconds / 2)
            self._verify_all()
        finally:
            with self._idle:
                self._over = True
                self._idle.notify_all()
            for thread in self._threads:
                thread.join(PATIENCE)
        self._judge()

    def _load(self, seconds: float) -> None:
        with self._idle:
            self._paused = False
            self._idle.notify_all()
        time.sleep(seconds)

    def _pause(self) -> None:
        with self._idle:
            self._paused = True
            if not self._idle.wait_for(lambda: not self._running, 2 * PATIENCE):
                self._fault(f"{self._running} requests under way have not ended in {2 * PATIENCE:g} s")

    def _steady(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        # The first turn warms it up: what is imported and pooled at the first use is no leak.
        self._ask_meanwhile(seconds / 4)
        self._eventually(self._warm)
        while True:
            self._pause()
            time.sleep(1)
            self.tally.samples.append(self._sample())
            if time.monotonic() > deadline and len(self.tally.samples) > 2:
                return
            self._ask_meanwhile(STEADY_TURN)

    def _ask_meanwhile(self, seconds: float) -> None:
        """The load, with cheap requests beside the slow clients, whose waiting is noted."""
        if not self._slow:
            self._load(seconds)
            return
        try:
            with Requests(self._service.http_port, CHEAP) as requests:
                self._load(seconds)
                self.tally.waited += requests.waited()
        except RuntimeError as error:
            self._fault(f"cheap requests: {error}")

    def _warm(self) -> bool:
        """Whether each worker of a service as it is shipped has taken an upload and has served the slow clients."""
        if self._service.eventlet or not self._slow:
            return True
        log = self._service.log()
        # What is given away has no bytes for uWSGI.
        sent = "0" if self._service.chosen["also"] else r"\d+"
        asked = (r"PUT \S+/file => generated 0 bytes", rf"GET \S+/file => generated {sent} bytes")
        return all(
            re.search(rf"\[pid: {worker}\|.* {each}", log) for worker in self._service.workers() for each in asked
        )

    def _disturb(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        kinds = [self._end_and_start]
        if self._service.eventlet:
            kinds = [self._reload, self._end_and_start]
        for number, disturb in enumerate(itertools.cycle(kinds), 1):
            self._load(DISTURBED_TURN)
            disturb()
            # Each of them at least once.
            if time.monotonic() > deadline and number >= len(kinds):
                break
        self._load(1)
        self._pause()

    def _reload(self) -> None:
        before = set(self._service.workers())
        self._disturbed = "reload"
        self._service.signal(signal.SIGHUP)
        if not self._eventually(lambda: not before & set(self._service.workers())):
            self._fault(f"{PATIENCE:g} s after a reload there are workers of before")
        self._calm("reloads")

    def _end_and_start(self) -> None:
        self._disturbed = "end"
        self._ended += 1
        self._service.expect_end()
        self._service.signal(signal.SIGTERM)
        kills = self._service.log().count(MERCILESS)
        ended = self._eventually(lambda: not self._service.pids(), ENDING)
        if not ended:
            self._end_by_force()
        forced = not ended or self._service.log().count(MERCILESS) > kills
        self._service.start_again()
        self._calm("ends by force" if forced else "ends")

    def _end_by_force(self) -> None:
        """End what does not end, and show where it was, unless the reason is known."""
        left, length = self._service.pids(), len(self._service.log())
        if len(left) != 1 or not _waits_for_the_log(left[0]):
            self._fault(f"{ENDING:g} s after SIGTERM there are processes left")
        # Python's faulthandler writes what each thread was doing.
        self._kill(signal.SIGABRT)
        if not self._eventually(lambda: not self._service.pids(), 10):
            self._kill(signal.SIGKILL)
            self._eventually(lambda: not self._service.pids())
        print(self._service.log()[max(0, length - 2000) :], flush=True)

    def _kill(self, number: signal.Signals) -> None:
        for pid in self._service.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _calm(self, count: str) -> None:
        self._calm_since = time.monotonic()
        self._disturbed = ""
        with self._lock:
            self.tally.done[count] += 1

    def _eventually(self, condition: Callable[[], object], seconds: float = PATIENCE) -> bool:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True

    def _verify_all(self) -> None:
        """Every image that the service has taken is there, whatever happened since."""
        for image in [*self._images.values(), *self._lasting]:
            try:
                self._check_alone(self._api, image, 0, image.size)
            except (Wrong, OSError, http.client.HTTPException) as error:
                self._fault(f"at the end: {type(error).__name__}: {error}")

    # Leftovers.

    def _sample(self) -> Sample:
        threads = 0
        open_files: Counter[str] = Counter()
        resident: dict[int, int] = {}
        for pid in self._service.pids():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                open_files.update(name for name in _open_files(pid) if "glance.sqlite" not in name)
                threads += len(os.listdir(f"/proc/{pid}/task"))
                pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                resident[pid] = pages * os.sysconf("SC_PAGE_SIZE")
        return Sample(open_files, threads, self._greenlets(), resident)

    def _greenlets(self) -> int:
        """The greenlets of the workers, of which glance's own report tells; none on native threads."""
        if not self._service.eventlet:
            return 0
        before = self._service.log().count("Guru Meditation")
        workers = self._service.workers()
        length = len(self._service.log())
        for worker in workers:
            os.kill(worker, signal.SIGUSR2)

        def reported() -> bool:
            self._api.ask("GET", "/healthcheck")
            return self._service.log().count("Guru Meditation") >= before + len(workers)

        self._eventually(reported)
        time.sleep(0.5)
        reports = self._service.log()[length:]
        # Those that have ended wait for the garbage collector, and hold nothing but their memory.
        return reports.count("  Green Thread  ") - reports.count("No Traceback!")

    def _judge(self) -> None:
        samples = self.tally.samples
        third = max(1, len(samples) // 3)
        for name in ("descriptors", "threads", "greenlets"):
            counts = [getattr(sample, name) for sample in samples]
            # The least of the last looks: a connection may still be about to close at one of them.
            workers = self._service.chosen["workers"]
            slack = {"descriptors": LINGERING, "threads": POOLED * workers, "greenlets": ANSWERING}[name]
            if min(counts[-third:]) > max(counts[:-third]) + slack:
                more = samples[-1].open_files - samples[0].open_files if name == "descriptors" else ""
                self._fault(f"{name} left behind: {counts} {more}")
        for pid in samples[0].resident:
            sizes = [sample.resident[pid] for sample in samples if pid in sample.resident]
            grown = statistics.median(sizes[-third:]) - statistics.median(sizes[:third])
            if grown > GROWTH:
                self._fault(f"process {pid} has grown by {grown / MIB:.1f} MiB: {[size // MIB for size in sizes]}")
        if not self.tally.done["download"] or not self.tally.done["upload"]:
            self._fault("no transfer has succeeded")
        if self._slow and not self.tally.done["slow_client"]:
            self._fault("no slow client has had its image")
        if (
            self._slow
            and not self._service.eventlet
            and self._service.chosen["also"]
            and GIVEN_AWAY not in self._service.log()
        ):
            self._fault(f"{SLOW_CLIENTS} has sent nothing")
        if self._service.eventlet and not self.tally.done["reloads"]:
            self._fault("there was no reload")


def _open_files(pid: int) -> Iterator[str]:
    """What the descriptors of a process are."""
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            # Without the number of the socket or the pipe.
            yield os.readlink(descriptor).partition(":[")[0]


def _waits_for_the_log(pid: int) -> bool:
    """Whether oslo.log's pipe, the one that an eventlet server has at its end, is empty: somebody has the lock."""
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if os.readlink(descriptor).startswith("pipe:"):
                pipe = os.open(descriptor, os.O_RDONLY | os.O_NONBLOCK)
                try:
                    (unread,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))
                finally:
                    os.close(pipe)
                return unread == 0
    return False


def summary(soak: Soak) -> dict[str, Any]:
    tally = soak.tally
    return {
        "GiB moved and verified": round(tally.bytes / (1 << 30), 2),
        "done": dict(sorted(tally.done.items())),
        "unanswered, reloading or ending": dict(sorted(tally.unanswered.items())),
        "cut off": dict(sorted(tally.cut_off.items())),
        "descriptors": [sample.descriptors for sample in tally.samples],
        "threads": [sample.threads for sample in tally.samples],
        "greenlets": [sample.greenlets for sample in tally.samples],
        "resident MiB": [sum(sample.resident.values()) // MIB for sample in tally.samples],
        **({"cheap requests": figures(tally.waited)} if tally.waited else {}),
        "faults": tally.faults,
    }


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    about = (__doc__ or "").splitlines()[0]
    parser = Parser(prog="python -m benchmarks.tools.soak", description=about)
    parser.add_argument("--seconds", type=float, default=120.0, help="of all releases together (%(default)s)")
    parser.add_argument(
        "--release", action="append", choices=list(RELEASES), help="may be repeated (all; with --slow, glance-33)"
    )
    parser.add_argument(
        "--slow", type=int, default=0, metavar="N",
        help=f"clients that download slowly, from a glance 33 as it is shipped, up to {MOST_SLOW} (%(default)s)",
    )  # fmt: skip
    parser.add_argument("--stock", action="store_true", help="without fastio: what stock does in its place")
    parser.add_argument("--seed", type=int, default=1, help="of what is sent (%(default)s)")
    options = parser.parse_args(arguments)
    if not LEAST <= options.seconds < math.inf:
        parser.error(f"--seconds {options.seconds:g}: at least {LEAST}, or there is no time for anything")
    if not 0 <= options.slow <= MOST_SLOW:
        parser.error(f"--slow {options.slow}: at least 0 and at most {MOST_SLOW}")
    releases = options.release or (["glance-33"] if options.slow else list(RELEASES))
    failed = False
    for release in releases:
        print(f"{release}, {'stock' if options.stock else 'fastio'}", flush=True)
        try:
            with RELEASES[release](
                fastio="off" if options.stock else "on",
                also=SLOW_CLIENTS if options.slow and not options.stock else "",
                environment={"PYTHONFAULTHANDLER": "1"},
                **(AS_SHIPPED if options.slow and release == "glance-33" else AT_WORK[release]),
            ) as service:
                soak = Soak(service, options.seed, options.slow)
                soak.run(options.seconds / len(releases))
                failed = failed or bool(soak.tally.faults)
                print(json.dumps(summary(soak), indent=1), flush=True)
                if soak.tally.faults:
                    raise BackendError("see the log")
        except BackendError as error:
            print(error, file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
