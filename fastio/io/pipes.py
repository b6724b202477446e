"""The capacity of pipes.

A read returns at most what the pipe holds, so a larger chunk gains nothing on a default pipe (64 KiB); see pipe(7) and
``F_SETPIPE_SZ`` in fcntl(2).
"""

import fcntl

from fastio.concurrency import budget
from fastio.concurrency.try_lock import TryLock

#: Linux's capacity of a new pipe (16 pages); if it is used up, the child has much to say.
DEFAULT_CAPACITY = 64 * 1024

#: Bytes by which all pipes of a process together are made larger, as a multiple of one pipe's limit. Without privileges
#: a user's pipes share 64 MiB (``pipe-user-pages-soft``): beyond it the user's new pipes hold 8 KiB.
MOST = 4

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


#: Descriptors of pipes that were made larger; some may have been closed, and be other files' by now.
_grown: set[int] = set()
_growing = TryLock()


def _held() -> int:
    """Bytes by which pipes are still larger: the kernel is asked, since a close is not reported."""
    held = 0
    for fd in tuple(_grown):
        more = capacity(fd) - DEFAULT_CAPACITY
        if more > 0:
            held += more
        else:
            _grown.discard(fd)
    return held


class Growth:
    """The larger pipe that one transfer asks for once it carries much: alone ``size``, with others its share.

    Only a pipe of the default capacity is touched: another capacity was set by a program, or by a kernel that had no
    more to give. When there are fewer others later on, it is asked for more.

    :param size: in bytes; 0 leaves the pipe unchanged
    """

    __slots__ = ("fd", "_size", "_asked", "_capacity")

    def __init__(self, fd: int, size: int) -> None:
        self.fd = fd
        self._size = size
        self._asked = 0
        self._capacity = DEFAULT_CAPACITY

    def ask(self) -> None:
        """The transfer still carries much; costs next to nothing where all has been granted."""
        if self._asked >= self._size:
            return
        wanted = budget.shared.pipe_size(self._size)
        if wanted < 2 * self._asked:
            return
        if wanted > self._capacity and capacity(self.fd) == self._capacity:
            if not _growing.try_acquire():
                # Two at once would both take what is left. This one asks again as it carries more.
                return
            try:
                own = self._capacity - DEFAULT_CAPACITY
                left = MOST * self._size - (_held() - own)
                # The kernel gives the next power of two.
                self._capacity = grow(self.fd, min(wanted, 1 << max(left, 1).bit_length() - 1))
                if self._capacity > DEFAULT_CAPACITY:
                    _grown.add(self.fd)
            finally:
                _growing.release()
        self._asked = wanted


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
