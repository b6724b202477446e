"""The recorder of a process: appends a line to its file for each root span that has ended, such as a request.

Lines go to a native thread that runs C functions only (:mod:`fastio.concurrency.threads`): it opens the file, makes
one write and closes it. No descriptor is kept, so none can be another file's after a fork, and the service never waits.
If the thread cannot keep up, or the disk is full, spans are lost and counted.

A span may end in a finalizer, wherever the collector runs, or in the handler of a signal. So nothing here that records
waits for a lock, logs, imports or switches greenlets.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import itertools
import os
import re
import socket
import stat
import sys
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fastio.concurrency import native
from fastio.concurrency.threads import Workers, at_once, step
from fastio.io import libc
from fastio.log import WARNING, log
from fastio.trace import otlp

#: Bytes of a file, and files of a process that are kept.
FILE_SIZE, FILES = 64 << 20, 16
#: Bytes of all files in the directory, beyond which a process removes the oldest when it begins to record.
TOTAL_SIZE = 8 << 30
#: Bytes of lines that wait to be written.
MOST_WAITING = 32 << 20
#: Spans of a root that wait for its end; then a line has those that have ended.
MOST_SPANS = 100
#: Seconds that the end of a process waits for its last lines.
_PATIENCE = 5.0

_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
#: Only the operator may read what a service does. The umask may allow less.
_PERMISSIONS = 0o640
_NAME = re.compile(r"[A-Za-z0-9._]{1,64}-\d+-[0-9a-f]{12}-\d+\.jsonl")


class _Job:
    """One write of all lines that wait when it is its turn."""

    __slots__ = ("data", "lines", "results", "spans")

    def __init__(self) -> None:
        #: the lines, and how many spans are in each of them
        self.lines: list[bytes] = []
        self.spans: list[int] = []
        #: the lines together
        self.data: list[bytes] = []
        #: what write(2) has returned
        self.results: list[int] = []


class Recorder:
    """Records the spans of one process.

    :param before: that of the process that this one was forked from
    """

    def __init__(self, directory: str, before: Recorder | None = None) -> None:
        self.directory = directory
        self.pid = os.getpid()
        #: spans that are in the files, and those that are not
        self.written = 0
        self.lost = 0
        self._component = "" if before is None else before.component
        self._instance = str(uuid.uuid4())
        self._host = socket.gethostname()
        #: ns from the monotonic clock to ns since 1970; it does not change, so that times of a process fit together
        self._clock = time.time_ns() - time.monotonic_ns()
        self._resource = ""
        self._ids = itertools.count(int.from_bytes(os.urandom(8), "big"))
        # Found now: whoever records must not import.
        self._start: Callable[..., Any] = native.start_new_thread() if before is None else before._start
        self._workers = Workers(1, lambda: self._start)
        #: lines that wait, and the number of spans in each
        self._lines: list[bytes] = []
        self._spans: list[int] = []
        #: has an element if a job will write them
        self._scheduled: list[None] = []
        self._jobs: deque[_Job] = deque()
        self._number = self._removed = self._size = self._queued = 0
        #: of the C library, that open the file, write to one and close it
        self._calls: tuple[Any, ...] = ()
        #: the end of the file may be part of a line
        self._torn = False
        self._warned = False

    def new_id(self) -> str:
        """The id of a span."""
        return f"{next(self._ids) % ((1 << 64) - 1) + 1:016x}"

    @property
    def component(self) -> str:
        """The name of the service."""
        return self._component

    @component.setter
    def component(self, name: str) -> None:
        if name != self._component:
            self._component, self._resource = name, ""

    def add(self, span: Any) -> None:
        """Take a span that has ended, and write what there is of its root if that has ended as well."""
        batch = span.batch
        batch.append(span)
        if not span.root.ended and len(batch) < MOST_SPANS:
            return
        spans = []
        # Other threads may do the same: each span is in one line.
        with contextlib.suppress(IndexError):
            while True:
                spans.append(batch.popleft())
        if spans:
            if self.lost:
                spans[-1].values["lost"] = self.lost
            if not self._resource:
                self._resource = otlp.resource(self._component, self._host, self._instance, self._clock)
            self._write(otlp.encode(self._resource, spans, self._clock), len(spans))

    def _write(self, data: bytes, spans: int) -> None:
        self.settle()
        if self._queued >= MOST_WAITING:
            self.lost += spans
            return
        if self._torn:
            self._torn = False
            data = b"\n" + data
        if self._size and self._size + len(data) > FILE_SIZE:
            self._number, self._size, self._calls = self._number + 1, 0, ()
        self._size += len(data)
        self._queued += len(data)
        self._spans.append(spans)
        self._lines.append(data)
        if _forks_later():
            self._write_here()
            return
        worker = self._workers.idlest()
        if worker is None:
            # Another thread starts it at this moment, or none can be started: the next job or the end writes the line.
            return
        worker.revive()
        if worker.failed:
            # The job that failed may not have taken the lines.
            worker.failed = False
            self._scheduled.clear()
        if not self._scheduled:
            job = _Job()
            noting = itertools.chain(step(self._scheduled.append, None), step(self._jobs.append, job))
            worker.submit(self._steps(job), noting=noting)
            if self._number >= self._removed + FILES:
                removing = libc.unlink(self._path(self._removed))
                worker.submit(step(*removing) if removing else ())
                self._removed += 1

    def _steps(self, job: _Job) -> Iterator[Any]:
        """Steps of a worker that open the file, append all lines that wait with one write, and close the file.

        A descriptor below 0 makes the other calls fail, without harm. Nobody runs between the steps that take the
        lines: none of them gives up the interpreter. The arguments of each call are made here: the worker must not
        make a tuple.
        """
        if not self._calls:
            self._calls = (
                libc.open_file(self._path(self._number), _FLAGS, _PERMISSIONS), libc.write(0, b"", 0), libc.close(0)
            )  # fmt: skip
        opening, writing, closing = self._calls
        if opening is None or writing is None or closing is None:
            return step(job.results.append, -1)
        fd, text, size = ctypes.c_int(-1), ctypes.c_char_p(), ctypes.c_size_t()
        return itertools.chain(
            _set(fd, step(*opening)),
            step(job.lines.extend, self._lines),
            step(job.spans.extend, self._spans),
            step(self._lines.clear),
            step(self._spans.clear),
            step(self._scheduled.clear),
            map(job.data.append, map(b"".join, (job.lines,))),
            _set(text, job.data),
            _set(size, map(len, job.data)),
            map(job.results.append, step(writing[0], fd, text, size)),
            step(closing[0], fd),
        )

    def _path(self, number: int) -> str:
        host = re.sub(r"[^A-Za-z0-9._]", "_", self._host)[:64] or "host"
        return os.path.join(self.directory, f"{host}-{self.pid}-{self._instance[-12:]}-{number}.jsonl")

    def settle(self) -> None:
        """Count the spans that have been written, and those that could not be."""
        while True:
            try:
                job = self._jobs.popleft()
            except IndexError:
                if not self._lines:
                    # Threads that add to it at the same moment may have it wrong until then.
                    self._queued = 0
                return
            # One write after the other: what has no result before one that has was lost with the thread.
            if not job.results and not any(later.results for later in tuple(self._jobs)[:1]):
                self._jobs.appendleft(job)
                return
            size = sum(map(len, job.data))
            self._queued -= size
            if job.results == [size]:
                self.written += sum(job.spans)
            else:
                self.lost += sum(job.spans)
                self._torn = True

    def _write_here(self) -> None:
        """Write the lines in this thread."""
        job = _Job()
        self._jobs.append(job)
        at_once(self._steps(job))
        self.settle()

    def warn(self) -> None:
        """Log once that spans are lost. This may wait, so it is called where a request begins, and at the end."""
        if self.lost and not self._warned:
            self._warned = True
            log(
                WARNING,
                "fastio: trace: %d spans could not be written to %s and are lost, and others may be: is the disk full, "
                "or the directory gone?",
                self.lost,
                self.directory,
            )

    def end(self) -> None:
        """Wait until all lines are written, but not for long."""
        sleep = native.module("time").sleep
        deadline = time.monotonic() + _PATIENCE
        self.settle()
        while self._jobs and time.monotonic() < deadline:
            for worker in self._workers:
                worker.revive()
            sleep(0.001)
            self.settle()
        if self._lines and not self._jobs:
            # No thread could be started.
            self._write_here()
        self.lost += sum(self._spans) + sum(sum(job.spans) for job in self._jobs)
        self.warn()


def _forks_later() -> bool:
    """Whether this is uWSGI's master: it forks without a word to Python, so it should have no threads."""
    worker = getattr(sys.modules.get("uwsgi"), "worker_id", None)
    return worker is not None and worker() == 0


def _set(variable: Any, value: Iterable[Any]) -> Iterator[Any]:
    """A step that gives a variable of ctypes the value that there is by then."""
    return map(setattr, (variable,), ("value",), value)


#: The recorder that is on; None while tracing is off.
active: Recorder | None = None
#: Called before recording ends, by those who may have something left to record.
before_end: list[Callable[[], None]] = []
_renewed: dict[int, Recorder] = {}
_hooked = False


def current() -> Recorder | None:
    """The recorder of this process.

    A forked child has its own. Not every fork tells Python: uWSGI's does not.
    """
    global active
    found = active
    if found is None or found.pid == os.getpid():
        return found
    # The same for all threads that are here at this moment.
    active = _renewed.setdefault(os.getpid(), Recorder(found.directory, found))
    return active


def start(directory: str) -> None:
    """Record into ``directory`` from now on; one that was on with another directory ends.

    :raises OSError: if the directory cannot be made, or is not safe to write into
    """
    global active, _hooked
    before = active
    if before is not None and before.directory == directory:
        return
    os.makedirs(directory, mode=0o750, exist_ok=True)
    _check(directory)
    _tidy(directory)
    active = Recorder(directory)
    if before is not None:
        before.end()
    if not _hooked:
        _hooked = True
        os.register_at_fork(after_in_child=_forked)
        atexit.register(stop)


def _check(directory: str) -> None:
    found = os.stat(directory)
    shared = found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX
    if os.geteuid() == 0 and (found.st_uid != 0 or shared):
        raise PermissionError("others could replace what root writes there: root must own it, and nobody else write")


def _tidy(directory: str) -> None:
    """Remove the oldest files of a trace if all together are too large."""
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                about = entry.stat(follow_symlinks=False)
                if _NAME.fullmatch(entry.name) and stat.S_ISREG(about.st_mode):
                    found.append((about.st_mtime_ns, about.st_size, entry.path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= TOTAL_SIZE:
            break
        total -= size
        with contextlib.suppress(OSError):
            os.unlink(path)


def stop() -> None:
    """Record no more."""
    global active
    if active is not None:
        for call in before_end:
            call()
    found, active = active, None
    if found is not None and found.pid == os.getpid():
        found.end()


def _forked() -> None:
    global active
    if active is not None:
        active = Recorder(active.directory, active)
