"""The recorder of a process: appends a line to its file for each root span that has ended, such as a request.

Lines go to a native thread that runs C functions only (:mod:`fastio.concurrency.threads`): it opens the file, makes
one write and closes it. No descriptor is kept, so none can be another file's after a fork, and the service never waits.
If the thread cannot keep up, or the disk is full, spans are lost and counted.

A span may end in a finalizer, wherever the collector runs, or in the handler of a signal: nothing here that records
waits for a lock, logs, imports or switches greenlets.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import operator
import os
import re
import socket
import stat
import sys
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from itertools import repeat, starmap
from typing import Any

from fastio.concurrency import native
from fastio.concurrency.events import NativeEvent, new_event
from fastio.concurrency.threads import Event, Worker, Workers, at_once, step
from fastio.config import is_trusted
from fastio.io import libc
from fastio.log import WARNING, log
from fastio.trace import otlp

with contextlib.suppress(ImportError):
    # Not every Python is built with it.
    import ctypes

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
        #: the name of the service
        self.component: str = "" if before is None else before.component
        self._instance = str(uuid.uuid4())
        self._host = socket.gethostname()
        #: ns from the monotonic clock to ns since 1970; it does not change, so that times of a process fit together
        self._clock = time.time_ns() - time.monotonic_ns()
        #: of a component, and the beginning of each line
        self._resource: tuple[str | None, str] = None, ""
        # Not of the module random, whose state a forked child shares.
        self._ids, self._traces = itertools.count(int.from_bytes(os.urandom(8), "big")), os.urandom(8).hex()
        # Found now: whoever records must not import.
        self._start: Callable[..., Any] = native.start_new_thread() if before is None else before._start
        self._workers = Workers(1, lambda: self._start)
        #: lines that wait
        self._lines: list[bytes] = []
        #: has an element if a job will write them
        self._scheduled: list[None] = []
        #: bytes and spans of each line of which it is not known yet whether it was written
        self._unsettled: deque[tuple[int, int]] = deque()
        #: of each write twice its number of lines, and 1 more if it has failed
        self._results: deque[int] = deque()
        self._number = self._removed = self._size = self._queued = 0
        self._steps = self._appending()
        #: the end of the file may be part of a line
        self._torn = False
        self._warned = False

    def new_id(self) -> str:
        """The id of a span."""
        return f"{next(self._ids) % ((1 << 64) - 1) + 1:016x}"

    def new_trace(self) -> str:
        """The id of a trace."""
        return self._traces + self.new_id()

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
            if self._resource[0] != self.component:
                made = otlp.resource(self.component, self._host, self._instance, self._clock)
                self._resource = self.component, made
            self._write(otlp.encode(self._resource[1], spans, self._clock), len(spans))

    def _write(self, data: bytes, spans: int) -> None:
        if self._results:
            self.settle()
        if self._queued >= MOST_WAITING:
            self.lost += spans
            return
        if self._torn:
            self._torn = False
            data = b"\n" + data
        if self._size and self._size + len(data) > FILE_SIZE:
            self._number, self._size = self._number + 1, 0
            self._steps = self._appending()
        self._size += len(data)
        self._queued += len(data)
        self._unsettled.append((len(data), spans))
        self._lines.append(data)
        if _forks_later():
            self._write_here()
            return
        worker = self._workers.idlest()
        # None where another thread starts it at this moment, or none can be started: the next line or the end has it
        # written.
        if worker is not None:
            self._schedule(worker)

    def _schedule(self, worker: Worker) -> None:
        """Have the lines that wait written, unless a job is there that will."""
        worker.revive()
        if worker.failed:
            # The job that failed may not have taken the lines.
            worker.failed = False
            self._scheduled.clear()
        if not self._scheduled:
            worker.submit(itertools.islice(self._steps, 1), noting=step(self._scheduled.append, None))
            if self._number >= self._removed + FILES:
                removing = libc.unlink_at(libc.AT_FDCWD, self._path(self._removed))
                worker.submit(step(*removing) if removing else ())
                self._removed += 1

    def _appending(self) -> Iterator[Any]:
        """Has no end; each element opens the file, appends all lines that wait with one write, and closes the file.

        A worker takes one for each job. They are made once: a job costs little then, and the worker allocates nothing
        that the collector counts. After a failure the descriptor is below 0, and makes the other calls fail, without
        harm. No other thread runs between the steps that take the lines: none of them gives up the interpreter. An
        exception leaves the lines that were taken in ``batch``, for the next job.
        """
        opening = libc.open_at(libc.AT_FDCWD, self._path(self._number), _FLAGS, _PERMISSIONS)
        writing, closing = libc.write(0, b"", 0), libc.close(0)
        assert opening is not None and writing is not None and closing is not None
        batch: list[bytes] = []
        #: the lines together, and what write(2) has returned
        state: list[Any] = [b"", 0]
        fd, text, size = ctypes.c_int(-1), ctypes.c_char_p(), ctypes.c_size_t()
        once, data, result = repeat(()), map(operator.getitem, repeat(state), repeat(0)), repeat(1)
        failed = map(operator.ne, map(len, data), map(operator.getitem, repeat(state), result))
        return zip(
            _set(fd, starmap(opening[0], repeat(opening[1:]))),
            map(batch.extend, repeat(self._lines)),
            starmap(self._lines.clear, once),
            starmap(self._scheduled.clear, once),
            map(operator.setitem, repeat(state), repeat(0), map(b"".join, repeat(batch))),
            _set(text, data),
            _set(size, map(len, data)),
            map(operator.setitem, repeat(state), result, starmap(writing[0], repeat((fd, text, size)))),
            starmap(closing[0], repeat((fd,))),
            map(self._results.append, map(operator.add, map(operator.mul, map(len, repeat(batch)), repeat(2)), failed)),
            starmap(batch.clear, once),
            strict=False,
        )

    def _path(self, number: int) -> str:
        host = re.sub(r"[^A-Za-z0-9._]", "_", self._host)[:64] or "host"
        return os.path.join(self.directory, f"{host}-{self.pid}-{self._instance[-12:]}-{number}.jsonl")

    def settle(self) -> None:
        """Count the spans that have been written, and those that could not be."""
        while True:
            try:
                lines, failed = divmod(self._results.popleft(), 2)
            except IndexError:
                if not self._unsettled:
                    # Threads that add to it at the same moment may have it wrong until then.
                    self._queued = 0
                return
            found = [self._unsettled.popleft() for _ in range(lines)]
            self._queued -= sum(size for size, _ in found)
            count = sum(spans for _, spans in found)
            if failed:
                self.lost += count
                self._torn = True
            else:
                self.written += count

    def _write_here(self) -> None:
        """Write the lines in this thread; others may do the same, so it has separate steps."""
        at_once(itertools.islice(self._appending(), 1))
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

    def end(self, event: Event) -> None:
        """Wait until all lines are written, but not for long.

        :param event: for the wait
        """
        deadline = time.monotonic() + _PATIENCE
        for worker in self._workers:
            self._schedule(worker)
            worker.submit(event.set())
            while not (reached := event.wait(_PATIENCE / 10)) and time.monotonic() < deadline:
                self._schedule(worker)
            if reached:
                at_once(event.close())
            else:
                worker.submit(event.close())
        if self._lines and not len(self._workers):
            # No thread could be started.
            self._write_here()
        self.settle()
        self.lost += sum(spans for _, spans in self._unsettled)
        self.warn()


def _forks_later() -> bool:
    """Whether this is uWSGI's master: it forks without a word to Python, so it should have no threads."""
    worker = getattr(sys.modules.get("uwsgi"), "worker_id", None)
    return worker is not None and worker() == 0


def _set(variable: Any, values: Iterator[Any]) -> Iterator[Any]:
    """Steps that give a variable of ctypes one value after the other."""
    return map(setattr, repeat(variable), repeat("value"), values)


#: The recorder that is on; None while tracing is off.
active: Recorder | None = None
#: Called before recording ends, by those who may have something left to record.
before_end: list[Callable[[], None]] = []
_renewed: dict[int, Recorder] = {}
#: Those before it, of which a thread may still write the last lines.
_left: list[Recorder] = []
_hooked = False


def current() -> Recorder | None:
    """The recorder of this process.

    A forked child has its own. Python does not know of every fork: not of uWSGI's.
    """
    global active
    found = active
    if found is None or found.pid == os.getpid():
        return found
    # All threads that are here at this moment get the same one.
    active = _renewed.setdefault(os.getpid(), Recorder(found.directory, found))
    return active


def start(directory: str) -> None:
    """Record into ``directory`` from now on. Lines that are still to be written to another are not waited for.

    :raises OSError: if the directory cannot be made, or is not safe to write into
    """
    global active, _hooked
    before = active
    if before is not None and before.directory == directory:
        return
    if "ctypes" not in globals():
        raise OSError("this Python has no ctypes, which a trace needs")
    os.makedirs(directory, mode=0o750, exist_ok=True)
    if os.geteuid() == 0 and not is_trusted(os.stat(directory)):
        raise PermissionError("others could replace what root writes there: only root may own it or write there")
    _tidy(directory)
    active = Recorder(directory)
    if before is not None:
        _left.append(before)
    if not _hooked:
        _hooked = True
        os.register_at_fork(after_in_child=_forked)
        atexit.register(stop, NativeEvent)


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


def stop(make_event: Callable[[], Event] = new_event) -> None:
    """Record no more, and wait until all is written; in a greenlet, others run meanwhile."""
    global active
    if active is not None:
        for call in before_end:
            call()
        _left.append(active)
        active = None
    while _left:
        found = _left.pop()
        if found.pid == os.getpid():
            found.end(make_event())


def _forked() -> None:
    global active
    if active is not None:
        active = Recorder(active.directory, active)
