"""What a process does beside its work: something every few seconds, and something when a descriptor is readable.

Where there is no hub, a native thread does it. Finalizers run in whatever thread allocates, and those of a service
under eventlet belong in the hub's; so in a process with a hub it is a greenlet of it. Whoever begins it may be a
finalizer or a signal handler: nothing here takes a lock.
"""

from __future__ import annotations

import os
import posix
import sys
import time
from collections.abc import Callable
from typing import Any

from fastio.concurrency import current, native
from fastio.concurrency.try_lock import TryLock


class Beat:
    """One process's.

    :param seconds: between two calls of ``work``
    :param given_up: called when the process has got a hub since, and somebody has to begin it again there
    :param ready: called when ``fd`` is readable
    """

    def __init__(
        self,
        seconds: float,
        work: Callable[[], object],
        given_up: Callable[[], object],
        fd: int = -1,
        ready: Callable[[], object] | None = None,
    ) -> None:
        self._seconds = seconds
        self._work = work
        self._given_up = given_up
        self._ready = ready
        self._ending = False
        self._ended = False
        #: what the thread or the greenlet has while it is there
        self._running = TryLock()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        # One descriptor for both, and the same one for a thread and for a hub.
        self._epoll = native.module("select").epoll()
        self._epoll.register(self._wake, 1)
        if fd >= 0:
            self._epoll.register(fd, 1)

    def begin(self) -> bool:
        """Start the thread or the greenlet; False where there is no hub yet in a process that will have one."""
        hub = current.hub_of_thread()
        if hub is None and (current.is_green() or not current.may_block()):
            return False
        if not self._running.try_acquire():
            return True
        if hub is not None:
            # Appends to a list; whatever waits or allocates much comes later, in the hub.
            hub.schedule_call_global(0, self._begin_in_hub, hub)
            return True
        try:
            native.start_new_thread()(self._run, (self._epoll.poll, current.is_green))
        except RuntimeError:
            # The system's limit is reached, or the interpreter ends.
            self._running.release()
            return False
        return True

    def end(self) -> None:
        """Do no more of it; what is being done is finished."""
        if self._running.taken:
            # What runs closes the descriptor as soon as it sees the end, so it is woken before.
            self._ending = True
            os.eventfd_write(self._wake, 1)
            self._ended = True
        else:
            self._ended = True
            self._close()

    def abandon(self) -> None:
        """In a forked child, of the parent's: its thread is not here, and its greenlet ends."""
        self._ended = True
        if not current.is_green():
            # A hub that was forked, too, may still have the number.
            self._close()

    def _close(self) -> None:
        self._epoll.close()
        posix.close(self._wake)

    def _begin_in_hub(self, hub: Any) -> None:
        from fastio.concurrency.hub_wait import WAITER

        def wait(seconds: float) -> object:
            return WAITER.readable(self._epoll.fileno(), seconds)

        WAITER.opened(self._epoll.fileno())
        sys.modules["greenlet"].greenlet(self._run, hub.greenlet).switch(wait, lambda: False)

    def _run(self, wait: Callable[[float], object], is_over: Callable[[], bool]) -> None:
        due = time.monotonic()
        while True:
            readable = wait(max(0.0, due - time.monotonic()))
            if self._ended:
                break
            if is_over():
                self._running.release()
                self._given_up()
                return
            if time.monotonic() >= due:
                due = time.monotonic() + self._seconds
                self._work()
            elif readable and self._ready is not None and not self._ending:
                self._ready()
        if self._running.taken:
            self._close()
