"""Waiting for descriptors and children: natively here, in eventlet's hub in :mod:`fastio.concurrency.hub_wait`."""

from __future__ import annotations

import contextlib
import math
import select
import selectors
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from fastio.concurrency import current, native

if TYPE_CHECKING:
    import subprocess


class Selector(Protocol):
    """What waits for several descriptors."""

    def watch_read(self, fd: int) -> None: ...

    def watch_write(self, fd: int) -> None: ...

    def forget(self, fd: int) -> None: ...

    def wait(self, timeout: float | None) -> Collection[int]:
        """Descriptors that are ready, in the order in which they were watched; none after ``timeout`` seconds."""
        ...


class Waiter(Protocol):
    """How a thread or greenlet waits."""

    #: Whether others run while it waits, so that a finalizer, which may run anywhere, must not wait.
    switches: bool
    #: What a wait raises for a descriptor that another greenlet closed meanwhile.
    closed: tuple[type[Exception], ...]

    def open_selector(self) -> AbstractContextManager[Selector]: ...

    def opened(self, fd: int) -> None:
        """``fd`` is new, whatever had that number before."""
        ...

    def readable(self, fd: int, seconds: float | None = None) -> bool:
        """Wait until ``fd`` is readable; False if that takes more than ``seconds``."""
        ...

    def writable(self, fd: int) -> None:
        """Wait until ``fd`` is writable."""
        ...

    def exited(self, popen: subprocess.Popen[bytes], seconds: float | None) -> bool:
        """Wait for the end of a child, and take its status; False if that takes more than ``seconds``."""
        ...

    def apart(self, work: Callable[[], object], patience: float | None) -> None:
        """Do ``work``, which goes on by itself if it takes more than ``patience`` seconds, where that is possible."""
        ...


class _Poll:
    """A :class:`Selector` on poll(2)."""

    def __init__(self) -> None:
        # eventlet takes it out of the module that it monkey patches.
        self._poll = (select if hasattr(select, "poll") else native.module("select")).poll()

    def watch_read(self, fd: int) -> None:
        self._poll.register(fd, select.POLLIN)

    def watch_write(self, fd: int) -> None:
        self._poll.register(fd, select.POLLOUT)

    def forget(self, fd: int) -> None:
        self._poll.unregister(fd)

    def wait(self, timeout: float | None) -> list[int]:
        # All of a millisecond, or it would be asked again and again for what is left of it.
        return [fd for fd, _ in self._poll.poll(None if timeout is None else math.ceil(max(0, timeout) * 1000))]


class _Chosen:
    """A :class:`Selector` on one of the standard library's."""

    def __init__(self, selector: Any) -> None:
        self._selector = selector

    def watch_read(self, fd: int) -> None:
        self._selector.register(fd, selectors.EVENT_READ)

    def watch_write(self, fd: int) -> None:
        self._selector.register(fd, selectors.EVENT_WRITE)

    def forget(self, fd: int) -> None:
        self._selector.unregister(fd)

    def wait(self, timeout: float | None) -> list[int]:
        return [key.fd for key, _ in self._selector.select(timeout)]


class NativeWaiter:
    """Waits in the kernel: a :class:`Waiter` for threads that have no hub.

    :param find_class: gives the class of the standard library's selectors to use, at each use
    """

    switches = False
    closed: tuple[type[Exception], ...] = ()

    def __init__(self, find_class: Callable[[], Any] | None = None) -> None:
        self._find_class = find_class

    @contextlib.contextmanager
    def open_selector(self) -> Iterator[Selector]:
        if self._find_class is None:
            yield _Poll()
            return
        with self._find_class()() as selector:
            yield _Chosen(selector)

    def opened(self, fd: int) -> None:
        """The kernel knows."""

    def readable(self, fd: int, seconds: float | None = None) -> bool:
        with self.open_selector() as selector:
            selector.watch_read(fd)
            return bool(selector.wait(seconds))

    def writable(self, fd: int) -> None:
        with self.open_selector() as selector:
            selector.watch_write(fd)
            selector.wait(None)

    def exited(self, popen: subprocess.Popen[bytes], seconds: float | None) -> bool:
        import subprocess

        try:
            popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def apart(self, work: Callable[[], object], patience: float | None) -> None:
        # Nothing can interrupt a thread, and so nobody waits for it to give up.
        work()


NATIVE = NativeWaiter()


def waiter() -> Waiter:
    """How the running thread or greenlet waits."""
    return _in_hub() if current.is_green() else NATIVE


def _in_hub() -> Waiter:
    from fastio.concurrency import hub_wait

    return hub_wait.WAITER
