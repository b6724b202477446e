"""System calls that upstream does not make: they can be had everywhere but in some place.

A kernel or a C library may not have one, a filter (seccomp, as systemd's and containers' are) may forbid it, or a limit
be reached that upstream would not have met. Then what upstream does has to do.
"""

from __future__ import annotations

import errno
import os

_REFUSALS = frozenset({
    # unknown to the kernel, or not for this kind of file
    errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.ESPIPE,
    # forbidden
    errno.EPERM, errno.EACCES,
    # no more descriptors or memory
    errno.EMFILE, errno.ENFILE, errno.ENOMEM,
})  # fmt: skip


def refused(error: BaseException) -> bool:
    """Whether ``error`` says that the call can not be made here, and not what came of it.

    NotImplementedError is what Python raises where the C library has not got the call (``preadv2`` with musl).
    """
    return isinstance(error, NotImplementedError) or isinstance(error, OSError) and error.errno in _REFUSALS


def is_blocking(fd: int) -> bool:
    """``os.get_blocking(fd)``; True, which is always safe to believe, where that can not be asked."""
    try:
        return os.get_blocking(fd)
    except OSError as error:
        if not refused(error):
            raise
        return True
