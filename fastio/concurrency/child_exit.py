"""Waiting for a child without polling: a pidfd becomes readable when it exits (pidfd_open(2), Linux 5.3)."""

import os
from collections.abc import Callable

from fastio.counters import Cause, Reason

_WAITABLE = os.WEXITED | os.WNOHANG | os.WNOWAIT


def open_pidfd(pid: int, numbered: Callable[[int], int] = int) -> int | Cause:
    """Return a descriptor that becomes readable when the child ``pid`` exits.

    A reason where there is nothing to wait for in this way: the child has exited, is not ours or was
    reaped elsewhere (ECHILD, also with SIGCHLD ignored), no descriptor is left (EMFILE), or
    the kernel has no pidfd. The caller then goes on like upstream. The child is not reaped.

    :param numbered: returns the descriptor, or a copy in its place that has another number
    """
    try:
        # Only an unreaped child keeps its pid; another process could have it by now.
        if os.waitid(os.P_PID, pid, _WAITABLE) is not None:
            return Reason.EXITED
        return numbered(os.pidfd_open(pid))
    except (OSError, AttributeError):
        return Reason.REFUSED
