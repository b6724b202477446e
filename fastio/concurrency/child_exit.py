"""Waiting for a child without polling: a pidfd becomes readable when it exits (pidfd_open(2), Linux 5.3)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, TypeAlias

from fastio.counters import Cause, Reason, Tally

#: One of :mod:`fastio.concurrency.waiting`, which imports this module for those of a hub.
Waiter: TypeAlias = Any

#: Longer time-outs, in seconds, are left to upstream: poll counts milliseconds in 32 bits.
_LONGEST = 2_000_000
_WAITABLE = os.WEXITED | os.WNOHANG | os.WNOWAIT


def keeps(popen: Any, cls: type, method: str) -> bool:
    """Whether ``popen`` has the ``method`` of ``cls``, so that nobody relies on how often upstream calls it."""
    return method not in vars(popen) and getattr(type(popen), method, None) is getattr(cls, method)


def until_exit(pid: int, waiter: Waiter, seconds: float | None) -> bool | Cause:
    """Wait until the child ``pid`` has exited; False if that takes more than ``seconds``.

    A reason where there is nothing to wait for in this way: the child has exited, is not ours or was
    reaped by somebody else (ECHILD, also with SIGCHLD ignored), no descriptor is left (EMFILE), or
    the kernel has no pidfd. The caller then goes on as upstream does. The child is not reaped.
    """
    try:
        # Only a child that nobody has reaped keeps its pid; another process could have it by now.
        if os.waitid(os.P_PID, pid, _WAITABLE) is not None:
            return Reason.EXITED
        pidfd = os.pidfd_open(pid)
    except (OSError, AttributeError):
        return Reason.REFUSED
    try:
        # The number may have been another file's a moment ago.
        waiter.opened(pidfd)
        return waiter.readable(pidfd, seconds)
    finally:
        os.close(pidfd)


def wait(
    popen: Any,
    timeout: float | None,
    waiter: Waiter,
    wrapped: Callable[[float | None], Any],
    expired: type[Exception],
    counts: Tally,
) -> Any:
    """``Popen.wait``: ``waiter`` waits until the child has exited or the time is over, then let upstream reap.

    :param wrapped: upstream's wait, given the seconds that are left
    :param expired: the TimeoutExpired that the caller is to see, with the whole of ``timeout``
    :param counts: of the patch that waits
    """
    if popen.returncode is not None or timeout is not None and not 0 < timeout <= _LONGEST:
        return wrapped(timeout)
    endtime = None if timeout is None else time.monotonic() + timeout
    found = until_exit(popen.pid, waiter, timeout)
    if isinstance(found, Cause):
        counts.fell_back(found)
        return wrapped(timeout)
    counts.took()
    if endtime is None:
        return wrapped(timeout)
    try:
        return wrapped(max(0.0, endtime - time.monotonic()))
    except expired:
        raise expired(popen.args, timeout) from None
