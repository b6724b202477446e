"""The recorder of a process: a bounded buffer, and a thread of the operating system that empties it to files.

Who records an event appends to the buffer and goes on. If the writer can not keep up, or the disk is full, events are
lost and counted; the service never waits. A forked child begins anew with its first event: with a file, a writer and
a buffer of its own.
"""

from __future__ import annotations

import atexit
import json
import os
import threading  # noqa: F401 - whichever thread imports it first is its main thread, which must not be the writer
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from fastio import native
from fastio.trace import redaction, resources
from fastio.trace.files import Files, dump

#: Seconds between two looks of the writer at the buffer: so much is lost of a process that is killed.
INTERVAL = 0.25
#: Seconds between two samples of what the process uses.
SAMPLES = 1.0
#: Events that are turned into text at a time; others run in between.
_BATCH = 256
#: Seconds that the end of a process waits for the writer.
_PATIENCE = 5.0

#: kind, ns, span, parent, name, thread, values
Event = tuple[str, int, int, "int | None", str, int, dict[str, Any]]

_monotonic = time.monotonic_ns


class Limits(NamedTuple):
    """What a process may use."""

    #: events that wait to be written
    buffer: int
    #: bytes of a file
    file_size: int
    #: bytes of all files
    total_size: int


def _encoder() -> Callable[[list[Event]], bytes]:
    """``json.dumps`` of several events, as cheap as there is."""
    try:
        # A quarter of what the standard library takes.
        import orjson
    except ImportError:
        encoder = json.JSONEncoder(check_circular=False, separators=(",", ":"))
        return lambda events: encoder.encode(events).encode()
    return orjson.dumps


_encode = _encoder()


def lines(events: list[Event]) -> bytes:
    """The text of what may be recorded of events, a line for each."""
    return encode(list(map(redaction.event, events)))


def encode(events: list[Event]) -> bytes:
    """The text of events whose values are flat, a line for each."""
    try:
        text = _encode(events)
    except (TypeError, ValueError):
        # A number that is none of orjson's.
        return b"".join(map(dump, events))
    # One call for all takes less than one for each. Within a string each quote has a backslash, so that only the end of
    # one event and the beginning of the next one look like this.
    return text[1:-1].replace(b'}],["', b'}]\n["') + b"\n"


def _note(values: dict[str, Any]) -> bytes:
    return dump(redaction.record(values))


class Recorder:
    """Records the events of a process, and of those that it forks."""

    def __init__(self, directory: str, limits: Limits) -> None:
        self.directory = directory
        self.limits = limits
        #: what the process is, as far as is known when the first event comes
        self.component = ""
        #: the last error of the writer, "" if all went well
        self.failure = ""
        self.written = 0
        self._ended = False
        self._begin()

    def _begin(self) -> None:
        self.buffer: deque[Event] = deque()
        #: events that ``buffer`` takes now: none before there is a writer, and none after the end
        self.room = 0
        self.written = self.lost = 0
        self._told = 0
        # Bare locks: what threading makes of them becomes greenlets' when the service monkey patches later.
        allocate_lock = native.module("_thread").allocate_lock
        self._lock = allocate_lock()
        #: held until the writer is to end
        self._ending = allocate_lock()
        self._ending.acquire()
        #: held while there is a writer
        self._writing = allocate_lock()
        self._files: Files | None = None

    def put(self, event: Event) -> None:
        """Record an event. :func:`fastio.trace.spans.event` does the same without this call where there is room."""
        if len(self.buffer) < self.room:
            self.buffer.append(event)
        else:
            self.put_without_room(event)

    def put_without_room(self, event: Event) -> None:
        """The first event of the process, which makes the writer, and those that find the buffer full."""
        with self._lock:
            if self._ended:
                return
            if self._files is None:
                self._files = Files(self.directory, self.limits.file_size, self.limits.total_size, self.component)
                self._writing.acquire()
                native.module("_thread").start_new_thread(self._run, (self._files,))
                self.room = self.limits.buffer
            if len(self.buffer) < self.room:
                self.buffer.append(event)
            else:
                self.lost += 1

    def forked(self) -> None:
        """In a child: what the parent had to write is the parent's."""
        if self._files is not None:
            self._files.close()
        self._begin()

    def end(self) -> None:
        """Write what there is, and end the files."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
            self.room = 0
        self._ending.release()
        if self._files is not None:
            self._writing.acquire(timeout=_PATIENCE)

    # The writer's side. Nothing here may log: the locks of a service's log are greenlets' under eventlet.

    def _run(self, files: Files) -> None:
        try:
            self._write_until_end(files)
        finally:
            self._writing.release()

    def _write_until_end(self, files: Files) -> None:
        next_sample = 0.0
        while True:
            ending = self._ending.acquire(timeout=INTERVAL)
            now = time.monotonic()
            if now >= next_sample or ending:
                next_sample = now + SAMPLES
                self.buffer.append(("P", _monotonic(), 0, None, "process.resources", 0, resources.sample()))
            self._drain(files)
            if ending:
                self._finish(files)
                return

    def _drain(self, files: Files) -> None:
        buffer = self.buffer
        # Not more than there is now: the writer must come to an end also where events come faster than it writes.
        left = len(buffer)
        while left > 0:
            count = min(left, _BATCH)
            left -= count
            self._write(files, lines([buffer.popleft() for _ in range(count)]), count)
        if self.lost > self._told:
            lost = self.lost
            if self._write(files, _note({"lost": lost - self._told, "monotonic": _monotonic()}), 0):
                self._told = lost

    def _write(self, files: Files, text: bytes, events: int) -> bool:
        try:
            deleted = files.write(text, events)
        except OSError as error:
            self.failure = f"{type(error).__name__}: {error}"
            with self._lock:
                self.lost += events
            return False
        self.written += events
        if deleted:
            with self._lock:
                self.lost += deleted
        return True

    def _finish(self, files: Files) -> None:
        end = {"end": True, "monotonic": _monotonic(), "events": self.written, "lost": self.lost}
        self._write(files, _note(end), 0)
        files.close()


#: The recorder that is on; None while tracing is off.
active: Recorder | None = None
_hooked = False


def start(directory: str, limits: Limits) -> None:
    """Record into ``directory`` from now on; one that was on with other values ends."""
    global active, _hooked
    if active is not None:
        if (active.directory, active.limits) == (directory, limits):
            return
        stop()
    os.makedirs(directory, mode=0o750, exist_ok=True)
    active = Recorder(directory, limits)
    if not _hooked:
        _hooked = True
        os.register_at_fork(after_in_child=_forked)
        atexit.register(stop)


def stop() -> None:
    """Record no more."""
    global active
    recorder, active = active, None
    if recorder is not None:
        recorder.end()


def _forked() -> None:
    if active is not None:
        active.forked()
