"""The capacity of pipes.

A read returns at most what the pipe holds, so a larger chunk gains nothing on a default pipe (64 KiB); see pipe(7) and
``F_SETPIPE_SZ`` in fcntl(2).
"""

from __future__ import annotations

import fcntl

#: What Linux gives a new pipe (16 pages), and so the sign of a child that has much to say.
DEFAULT_CAPACITY = 64 * 1024

_GET = getattr(fcntl, "F_GETPIPE_SZ", None)
_SET = getattr(fcntl, "F_SETPIPE_SZ", None)


def capacity(fd: int) -> int:
    """Bytes that the pipe at ``fd`` can hold; 0 where it is no pipe or the system does not tell."""
    if _GET is None:
        return 0
    try:
        return fcntl.fcntl(fd, _GET)
    except OSError:
        return 0


def grow(fd: int, size: int) -> int:
    """Ask the kernel for a pipe of ``size`` bytes; returns the capacity then in force (0: not a pipe).

    Never makes a pipe smaller. Where the kernel refuses the size (EPERM above
    ``/proc/sys/fs/pipe-max-size`` or beyond the user's ``pipe-user-pages-soft``, ENOMEM), half of
    it is tried, and so on: no size is an error.
    """
    now = capacity(fd)
    if _SET is None or now == 0:
        return now
    while size > now:
        try:
            return fcntl.fcntl(fd, _SET, size)
        except OSError:
            size //= 2
    return now
