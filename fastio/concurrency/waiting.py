"""Waiting for descriptors and children: natively here, in eventlet's hub in :mod:`fastio.concurrency.hub_wait`."""

from __future__ import annotations

import math
import select
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from fastio.concurrency import current, native

if TYPE_CHECKING:
    import subprocess

    from fastio.concurrency.hub_wait import HubSelector, HubWaiter

    Selector: TypeAlias = "NativeSelector | HubSelector"
    Waiter: TypeAlias = "NativeWaiter | HubWaiter"


class NativeSelector:
    """Waits for several descriptors with poll(2)."""

    def __init__(self) -> None:
        # eventlet takes it out of the module that it monkey patches.
        self._poll = (select if hasattr(select, "poll") else native.module("select")).poll()

    def __enter__(self) -> NativeSelector:
        return self

    def __exit__(self, *exc_info: object) -> None:
        """There is nothing to give back."""

    def watch_read(self, fd: int) -> None:
        self._poll.register(fd, select.POLLIN)

    def watch_write(self, fd: int) -> None:
        self._poll.register(fd, select.POLLOUT)

    def forget(self, fd: int) -> None:
        self._poll.unregister(fd)

    def wait(self, timeout: float | None) -> list[int]:
        """Return the ready descriptors, or an empty list after ``timeout`` seconds."""
        # All of a millisecond, or it would be asked again and again for what is left of it.
        return [fd for fd, _ in self._poll.poll(None if timeout is None else math.ceil(max(0, timeout) * 1000))]


class NativeWaiter:
    """Waits in the kernel, for threads that have no hub."""

    #: Whether others run while it waits, so that a finalizer, which may run anywhere, must not wait.
    switches = False

    def open_selector(self) -> NativeSelector:
        return NativeSelector()

    def opened(self, fd: int) -> None:
        """``fd`` is new, whatever had that number before: the kernel knows."""

    def readable(self, fd: int, seconds: float | None = None) -> bool:
        """Wait until ``fd`` is readable; False if that takes more than ``seconds``."""
        selector = NativeSelector()
        selector.watch_read(fd)
        return bool(selector.wait(seconds))

    def writable(self, fd: int) -> None:
        """Wait until ``fd`` is writable."""
        selector = NativeSelector()
        selector.watch_write(fd)
        selector.wait(None)

    def exited(self, popen: subprocess.Popen[bytes], seconds: float | None) -> bool:
        """Wait for the end of a child, and take its status; False if that takes more than ``seconds``."""
        import subprocess

        try:
            popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def apart(self, work: Callable[[], object], patience: float | None) -> None:
        """Do ``work``, which goes on by itself if it takes more than ``patience`` seconds, where that is possible."""
        # Nothing can interrupt a thread, so its end is not waited for.
        work()


NATIVE = NativeWaiter()


def waiter() -> Waiter:
    """How the running thread or greenlet waits."""
    if not current.is_green():
        return NATIVE
    from fastio.concurrency import hub_wait

    return hub_wait.WAITER
