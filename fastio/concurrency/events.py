"""How a thread or greenlet waits for a native thread: :class:`fastio.concurrency.threads.Event`."""

import os
import posix
from _queue import Empty, SimpleQueue  # C, and native also where eventlet has replaced queue's
from collections.abc import Iterator
from typing import Any

from fastio.concurrency import current
from fastio.concurrency.threads import Event, step


class NativeEvent:
    """Blocks the thread that waits."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[None] = SimpleQueue()

    def set(self) -> Iterator[Any]:
        return step(self._queue.put, None)

    def wait(self, seconds: float) -> bool:
        try:
            self._queue.get(timeout=seconds)
        except Empty:
            return False
        return True

    def close(self) -> Iterator[Any]:
        return iter(())


class HubEvent:
    """Lets other greenlets run while one waits for a thread: a descriptor in the hub, a third of what tpool takes."""

    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def set(self) -> Iterator[Any]:
        return step(os.eventfd_write, self._fd, 1)

    def wait(self, seconds: float) -> bool:
        from fastio.concurrency.hub_wait import WAITER

        # The hub must know that the number may have been another file's a moment ago.
        WAITER.opened(self._fd)
        return WAITER.readable(self._fd, seconds)

    def close(self) -> Iterator[Any]:
        return step(posix.close, self._fd)


class _PollingEvent(NativeEvent):
    """The same where there are no descriptors left, or the system forbids this kind."""

    #: Seconds between two looks: about as long as what is waited for takes.
    INTERVAL = 0.002

    def wait(self, seconds: float) -> bool:
        from fastio.concurrency.hub_wait import WAITER

        return WAITER.until(lambda: not self._queue.empty(), seconds, self.INTERVAL)


def new_event() -> Event:
    """A wait in the hub for a greenlet that has one; a native thread (eventlet's tpool for one) is blocked."""
    if current.hub() is None:
        return NativeEvent()
    try:
        return HubEvent()
    except OSError:
        return _PollingEvent()
