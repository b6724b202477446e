"""The recorder of a process: a bounded buffer, and a writer that empties it to files.

Who records an event appends to the buffer and goes on. If the writer cannot keep up, or the disk is full, events are
lost and counted; the service never waits. A forked child begins anew with its first event: with a file, a writer and
a buffer of its own.

An event may be recorded by a finalizer, wherever the collector runs, or by the handler of a signal. So nothing here
that records waits for a lock, imports or switches greenlets; what only one may do is done by who gets a lock at once.

The writer is a thread of the operating system where there is no hub. Finalizers run in whatever thread allocates, and
those of a service under eventlet belong in the hub's; so in a process with a hub the writer is a greenlet of it, which
has native threads make the calls that wait (:mod:`fastio.concurrency.threads`). It is there while there are events.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import sys
import threading  # noqa: F401 - whichever thread imports it first is its main thread, which must not be the writer
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from fastio.concurrency import current, native, offload
from fastio.concurrency.try_lock import TryLock
from fastio.io import libc
from fastio.trace import redaction, resources
from fastio.trace.files import Files, Native, dump, look_up_releases

#: Seconds between two looks of the writer at the buffer: so much is lost of a process that is killed.
INTERVAL = 0.25
#: Seconds between two samples of what the process uses.
SAMPLES = 1.0
#: Bytes of text that are written at a time.
_PIECE = 256 * 1024
#: Seconds that the end of a process waits for the writer.
_PATIENCE = 5.0
#: Seconds after which a writer in a hub that is not seen counts as gone.
_STALE = 10.0

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
    return encode(redaction.events(events))


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


class _TakenOver(Exception):
    """Somebody else has gone on with what this writer was doing."""


class _InHub(Native):
    """The mode of a writer that is a greenlet: it waits in the hub, and its calls are made elsewhere."""

    batch = 16
    #: Seconds after which others run.
    TURN = 0.0001

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.thread = native.module("_thread").get_ident()
        self._began = time.monotonic()

    def open(self, path: str, flags: int, permissions: int) -> int:
        fd = self._call(libc.open_file(path, flags, permissions))
        if fd < 0:
            return super().open(path, flags, permissions)
        if self._recorder.mode is not self:
            self._close(fd)
            self._call(libc.unlink(path))
            raise _TakenOver
        return fd

    def write(self, fd: int, data: bytes, start: int, offset: int) -> int:
        count = self._call(libc.pwrite(fd, data, start, offset))
        self._check()
        return count if count > 0 else super().write(fd, data, start, offset)

    def truncate(self, fd: int, size: int) -> None:
        failed = self._call(libc.truncate(fd, size)) < 0
        self._check()
        if failed:
            super().truncate(fd, size)

    def close(self, fd: int) -> None:
        self._close(fd)
        self._check()

    def unlink(self, path: str) -> None:
        self._call(libc.unlink(path))
        self._check()

    def yield_when_due(self) -> None:
        if time.monotonic() - self._began > self.TURN:
            self.sleep(0)
            self._check()

    def sleep(self, seconds: float) -> None:
        sys.modules["eventlet"].sleep(seconds)
        self._began = time.monotonic()

    def _close(self, fd: int) -> None:
        call = libc.close(fd)
        if call is None:
            super().close(fd)
        else:
            self._call(call)

    def _call(self, call: tuple[Any, ...] | None) -> int:
        result: int = -1 if call is None else offload.run(*call)
        self._began = time.monotonic()
        return result

    def _check(self) -> None:
        if self._recorder.mode is not self:
            raise _TakenOver


class Recorder:
    """Records the events of a process.

    :param before: that of the process that this one was forked from
    """

    def __init__(self, directory: str, limits: Limits, before: Recorder | None = None) -> None:
        self.directory = directory
        self.limits = limits
        #: the description of the process, from what is known at the first event
        self.component: str = "" if before is None else before.component
        #: the last error of the writer, "" if all went well
        self.failure = ""
        self.written = 0
        #: as the writer knew it last
        self.lost = 0
        self.buffer: deque[Event] = deque()
        #: events that ``buffer`` takes without a look at the writer; 0 to have somebody look
        self.room = 0
        self._ended = False
        #: a hub was seen
        self._green: bool = before is not None and before._green
        # The system's, found now: whoever records must not import.
        self._system: _System = _system() if before is None else before._system
        #: what the writer has while it is there: the thread, and the greenlet
        self._thread = TryLock()
        self._in_hub = TryLock()
        #: when the writer in the hub was asked for, or last seen at work
        self._seen = 0.0
        # The writer's side.
        self._losses = itertools.count()
        self._looks = 0
        self._dropped = self._told = 0
        self._files: Files | None = None
        #: text that is not in the file yet, and its events
        self._text: list[bytes] = []
        self._events = 0
        self._next_sample = 0.0
        #: of a writer in the hub that is at it
        self.mode: _InHub | None = None
        #: Held by the writer that is at it. Only the end waits for it, and not for ever.
        self._turn = self._system.allocate_lock()
        #: Held until the end. Only the thread waits for it.
        self._ending = self._system.allocate_lock()
        self._ending.acquire()

    def put_without_room(self, event: Event) -> None:
        """Record the first event of the process, which has a writer made, or one that finds no room in the buffer."""
        if self._ended:
            return
        self._see_to_a_writer()
        if len(self.buffer) < self.limits.buffer:
            self.buffer.append(event)
        else:
            next(self._losses)

    def _see_to_a_writer(self) -> None:
        hub = current.hub_of_thread()
        if hub is not None:
            self._green = True
            if self._in_hub.try_acquire() or time.monotonic() - self._seen > _STALE:
                # The second is for a hub that is gone, and the writer with it, or one that has lost the timer: what a
                # finalizer adds while the hub empties its list of new timers is taken away with them.
                self._seen = time.monotonic()
                # Appends to a list; whatever waits or allocates much comes later, in the hub.
                hub.schedule_call_global(INTERVAL, self._begin_in_hub, hub)
            # There is room once the writer is there: until then everybody looks.
            return
        elif self._green or current.is_green():
            # A thread beside the hub's: the writer comes with the next event of the hub's thread.
            return
        elif self._thread.try_acquire():
            try:
                self._system.start_new_thread(self._write_in_thread, ())
            except RuntimeError:
                # The system's limit is reached, or the interpreter ends.
                self._thread.release()
                return
        self._make_room()

    def _make_room(self) -> None:
        self.room = self.limits.buffer
        if self._ended:
            self.room = 0

    def abandon(self) -> None:
        """In a child, of the parent's: what the parent had to write is the parent's."""
        self._ended = True
        self.room = 0
        self.mode = None
        if self._files is not None:
            self._files.close(Native())

    def end(self) -> None:
        """Write what there is, in this thread and at once, and end the files."""
        if self._ended:
            return
        self._ended = True
        self.room = 0
        self._ending.release()
        # A greenlet of this thread cannot run meanwhile. Its work is done again, and it finds out.
        taken_over = self.mode is not None and self.mode.thread == self._system.get_ident()
        if taken_over:
            self.mode = None
        elif not self._turn.acquire(timeout=_PATIENCE):
            return
        if self._files is not None or self.buffer:
            self._next_sample = 0.0
            mode = Native()
            self._round(mode)
            end = {"end": True, "monotonic": _monotonic(), "events": self.written, "lost": self.lost}
            self._text.append(_note(end))
            self._flush(mode)
            # A native thread may still be writing for the greenlet, who closes it.
            if not taken_over and self._files is not None:
                self._files.close(mode)
        self._turn.release()

    # The writer's side. Nothing here may log: the locks of a service's log are greenlets' under eventlet.

    def _write_in_thread(self) -> None:
        mode = Native()
        while not self._ending.acquire(timeout=INTERVAL):
            if self._green or current.is_green():
                self.room = 0
                return
            if self._turn.acquire(False):
                try:
                    self._round(mode)
                finally:
                    self._turn.release()
            if current.may_have_hubs():
                # The next one who records looks whether there is a hub by now.
                self.room = 0

    def _begin_in_hub(self, hub: Any) -> None:
        sys.modules["greenlet"].greenlet(self._write_in_hub, hub.greenlet).switch()

    def _write_in_hub(self) -> None:
        mode = _InHub(self)
        try:
            while not self._ended:
                self._seen = time.monotonic()
                self._make_room()
                if self._turn.acquire(False):
                    self.mode = mode
                    had = bool(self.buffer)
                    if had:
                        self._round(mode)
                    self.mode = None
                    self._turn.release()
                    if not had:
                        break
                mode.sleep(INTERVAL)
        except _TakenOver:
            if self._files is not None:
                with contextlib.suppress(_TakenOver):
                    self._files.close(mode)
        except BaseException as error:
            self.failure = f"{type(error).__name__}: {error}"
            if self.mode is mode:
                self.mode = None
                self._turn.release()
            if not isinstance(error, Exception):
                # Not meant for a writer, such as the KeyboardInterrupt of a signal that came just now.
                raise
        finally:
            self.room = 0
            self._in_hub.release()

    def _round(self, mode: Native) -> None:
        """Write what there is now, and no more: it must come to an end also where events come faster."""
        self._flush(mode)
        now = time.monotonic()
        if now >= self._next_sample:
            self._next_sample = now + SAMPLES
            self.buffer.append(("P", _monotonic(), 0, None, "process.resources", 0, resources.sample()))
        buffer = self.buffer
        left = len(buffer)
        size = 0
        while left > 0:
            count = min(left, mode.batch)
            left -= count
            events = [buffer.popleft() for _ in range(count)]
            try:
                text = lines(events)
            except Exception as error:
                self.failure = f"{type(error).__name__}: {error}"
                self._dropped += count
                continue
            self._text.append(text)
            self._events += count
            size += len(text)
            if size > _PIECE:
                self._flush(mode)
                size = 0
            mode.yield_when_due()
        self._flush(mode)
        self._tell_lost(mode)

    def _tell_lost(self, mode: Native) -> None:
        # The only way to read a counter that all threads share is to count with it.
        missed = next(self._losses) - self._looks
        self._looks += 1
        deleted = 0 if self._files is None else self._files.deleted
        self.lost = missed + self._dropped + deleted
        if self.lost > self._told:
            before, self._told = self._told, self.lost
            self._text.append(_note({"lost": self.lost - before, "monotonic": _monotonic()}))
            if not self._flush(mode):
                self._told = before

    def _flush(self, mode: Native) -> bool:
        if not self._text:
            return True
        text = b"".join(self._text)
        # The next writer finds it, and writes it at the same place.
        self._text[:] = [text]
        try:
            if self._files is None:
                limits = self.limits
                self._files = Files(self.directory, limits.file_size, limits.total_size, self.component)
            self._files.write(text, self._events, mode)
        except OSError as error:
            self.failure = f"{type(error).__name__}: {error}"
            self._dropped += self._events
            self._text, self._events = [], 0
            return False
        self.written += self._events
        self._text, self._events = [], 0
        self._files.rotate(mode)
        return True


class _System(NamedTuple):
    """What ``_thread`` of the standard library has, also where eventlet has replaced it."""

    start_new_thread: Callable[..., Any]
    allocate_lock: Callable[[], Any]
    get_ident: Callable[[], int]


def _system() -> _System:
    module = native.module("_thread")
    return _System(module.start_new_thread, module.allocate_lock, module.get_ident)


#: The recorder that is on; None while tracing is off.
active: Recorder | None = None
#: Called before recording ends, by those who may have something left to record.
before_end: list[Callable[[], None]] = []
_hooked = False


def start(directory: str, limits: Limits) -> None:
    """Record into ``directory`` from now on; one that was on with other values ends."""
    global active, _hooked
    before = active
    if before is not None and (before.directory, before.limits) == (directory, limits):
        return
    os.makedirs(directory, mode=0o750, exist_ok=True)
    look_up_releases()
    # It is complete before it can be seen: a thread may record at any moment.
    active = Recorder(directory, limits)
    if before is not None:
        before.end()
    if not _hooked:
        _hooked = True
        os.register_at_fork(after_in_child=_forked)
        atexit.register(stop)


def stop() -> None:
    """Record no more."""
    global active
    if active is not None:
        for call in before_end:
            call()
    recorder, active = active, None
    if recorder is not None:
        recorder.end()


def _forked() -> None:
    global active
    before = active
    if before is not None:
        active = Recorder(before.directory, before.limits, before)
        before.abandon()
