"""Waiting in eventlet's hub. It is imported only after eventlet."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from types import CodeType
from typing import TYPE_CHECKING, Any

import eventlet
from eventlet import greenthread, hubs
from eventlet.support import greenlets

from fastio.concurrency import child_exit, current
from fastio.counters import Cause

if TYPE_CHECKING:
    import subprocess

#: Seconds between two looks at a child where the kernel cannot tell of its end.
_LOOKS = 0.01
#: Seconds after which a greenlet is resumed again that something else has resumed in its place.
_AGAIN = 0.05
#: The first number that is too high for select(2).
_FD_SETSIZE = 1024
_SLEEP = getattr(greenthread.sleep, "__code__", None)


class HubSelector:
    """A :class:`fastio.concurrency.waiting.Selector` that lets other greenlets run while it waits.

    The listeners stay with the hub from one wait to the next, where ``trampoline()`` adds and removes one each time
    (two ``epoll_ctl`` and their bookkeeping). The hub may call several of them in one turn; each switches to the
    greenlet only while that waits here. A signal handler that yields may consume such a switch. Readiness is reported
    again in the next turn of the hub, and a time-out or an error is repeated until :meth:`wait` has returned. As with
    upstream's ``select()``, the hub knows of nothing before the first wait, and only a wait raises what the hub does.
    """

    def __init__(self) -> None:
        self._hub = hubs.get_hub()
        self._greenlet = greenlets.getcurrent()
        #: events that are waited for, by descriptor
        self._events: dict[int, str] = {}
        self._listeners: dict[int, Any] = {}
        #: device and inode of each descriptor when its listener was added
        self._files: dict[int, tuple[int, int] | None] = {}
        self._ready: set[int] = set()
        self._thrown: tuple[Any, ...] | None = None
        self._timer: Any = None
        self._waiting = False

    def __enter__(self) -> HubSelector:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for fd in list(self._listeners):
            self._hub.remove(self._listeners.pop(fd))

    def watch_read(self, fd: int) -> None:
        self._events[fd] = self._hub.READ

    def watch_write(self, fd: int) -> None:
        self._events[fd] = self._hub.WRITE

    def forget(self, fd: int) -> None:
        del self._events[fd]
        self._ready.discard(fd)
        self._files.pop(fd, None)
        if fd in self._listeners:
            self._hub.remove(self._listeners.pop(fd))

    def wait(self, timeout: float | None) -> list[int]:
        """Return the ready descriptors, or an empty list after ``timeout`` seconds.

        :raises OSError: a descriptor was closed elsewhere; upstream, which registers it for each wait, raises the same
        """
        self._watch()
        if timeout is not None:
            self._timer = self._hub.schedule_call_global(timeout, self._resume)
        self._ready.clear()
        self._waiting = True
        try:
            if self._thrown is None:
                self._hub.switch()
        finally:
            self._waiting = False
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        if self._thrown is not None:
            thrown, self._thrown = self._thrown, None
            raise thrown[0] if len(thrown) == 1 else thrown[1]
        return [fd for fd in self._listeners if fd in self._ready]

    def _watch(self) -> None:
        """Tell the hub of what is new, and of what was closed or replaced elsewhere, which epoll has dropped."""
        if self._hub.greenlet is self._greenlet:
            # It looks at nothing else then, and raises what this release raises.
            hubs.trampoline(-1, read=True)
        for fd, event in self._events.items():
            file = _identify(fd)
            listener = self._listeners.get(fd)
            if listener is None or file != self._files[fd]:
                if listener is not None:
                    self._hub.remove(self._listeners.pop(fd))
                self._listeners[fd] = self._hub.add(event, fd, self._on_ready, self._on_error, lambda: None)
                self._files[fd] = file

    def _on_ready(self, fd: int) -> None:
        self._ready.add(fd)
        if self._waiting:
            self._greenlet.switch()

    def _on_error(self, *exception: Any) -> None:
        self._thrown = exception
        self._resume()

    def _resume(self) -> None:
        """Switch to the greenlet, and again later until it has left :meth:`wait`."""
        if self._waiting:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._hub.schedule_call_global(_AGAIN, self._resume)
            self._greenlet.switch()


def _identify(fd: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def is_waited_for(fd: int) -> bool:
    """Whether a greenlet of this thread waits in the hub until ``fd`` can be read."""
    hub = current.hub_of_thread()
    return hub is not None and fd in hub.listeners[hub.READ]


def unwatched(fd: int) -> int:
    """Return ``fd``, or a copy in its place with a number on which no greenlet waits.

    The hub wakes a greenlet that waits for a closed file once the number of that file belongs to another one.

    :raises OSError: no number is left; ``fd`` is closed then
    """
    hub = hubs.get_hub()
    while fd in hub.listeners[hub.READ] or fd in hub.listeners[hub.WRITE]:
        try:
            copy = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, fd + 1)
        finally:
            os.close(fd)
        fd = copy
    return fd


@contextlib.contextmanager
def sleeps_end_early(code: CodeType, fd: int) -> Iterator[None]:
    """While this is entered, the ``eventlet.sleep()`` that a function with ``code`` calls ends once ``fd`` is readable.

    Whatever else the greenlet may be waiting for then, such as in a method that the function calls, goes on. Where the
    hub cannot wait for ``fd``, the sleep is not shortened.
    """
    hub, greenlet = hubs.get_hub(), greenlets.getcurrent()

    def on_ready(fd: int) -> None:
        # It stays readable, and would be reported in each turn of the hub.
        while listeners:
            hub.remove(listeners.pop())
        # The greenlet is in switch() of the hub; who has called that, and who that?
        frame = greenlet.gr_frame and greenlet.gr_frame.f_back
        is_asleep = frame and frame.f_code is _SLEEP and frame.f_back.f_code is code
        # This function goes on only when the hub does, and would keep all that the frames refer to.
        del frame
        if is_asleep:
            greenlet.switch()

    WAITER.opened(fd)
    listeners: list[Any] = []
    try:
        if fd < _FD_SETSIZE or type(hub).__module__ != "eventlet.hubs.selects":
            with contextlib.suppress(OSError):
                listeners.append(hub.add(hub.READ, fd, on_ready, lambda *exception: None, lambda: None))
            if not listeners:
                # epoll has no room, and the hub has noted the listener before it asked.
                hub.remove_descriptor(fd)
        yield
    finally:
        for listener in listeners:
            hub.remove(listener)


class _TimeIsOver(Exception):
    pass


class HubWaiter:
    """Lets other greenlets run: a :class:`fastio.concurrency.waiting.Waiter`."""

    switches = True

    def open_selector(self) -> HubSelector:
        return HubSelector()

    def opened(self, fd: int) -> None:
        hubs.notify_opened(fd)
        if type(hubs.get_hub()).__module__ != "eventlet.hubs.epolls":
            # The hub may be removing what had this number before, and would remove the listener of ``fd`` with it.
            eventlet.sleep(0)

    def readable(self, fd: int, seconds: float | None = None) -> bool:
        try:
            hubs.trampoline(fd, read=True, timeout=seconds, timeout_exc=_TimeIsOver)
        except _TimeIsOver:
            return False
        return True

    def writable(self, fd: int) -> None:
        hubs.trampoline(fd, write=True)

    def exited(self, popen: subprocess.Popen[bytes], seconds: float | None) -> bool:
        end = None if seconds is None else time.monotonic() + seconds
        if popen.poll() is None and (seconds is None or seconds > 0):
            pidfd = child_exit.open_pidfd(popen.pid, unwatched)
            if not isinstance(pidfd, Cause):
                try:
                    self.opened(pidfd)
                    self.readable(pidfd, seconds)
                finally:
                    os.close(pidfd)
        # The kernel may have no pidfd for us, and Popen.wait() may be the stock one, which would hold up the hub.
        left = None if end is None else end - time.monotonic()
        return self.until(lambda: popen.poll() is not None, left, _LOOKS)

    def until(self, ready: Callable[[], bool], seconds: float | None, interval: float) -> bool:
        """Ask ``ready()`` every ``interval`` seconds, without a descriptor to wait for; False after ``seconds``."""
        end = None if seconds is None else time.monotonic() + seconds
        while not ready():
            if end is not None and time.monotonic() >= end:
                return False
            eventlet.sleep(interval)
        return True

    def apart(self, work: Callable[[], object], patience: float | None) -> None:
        working = eventlet.spawn(work)
        with eventlet.Timeout(patience, False):
            working.wait()


WAITER = HubWaiter()
