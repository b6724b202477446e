"""System calls that upstream does not make, and that are missing in some places.

A kernel or a C library may not have a call, a filter (seccomp, as systemd and containers use it) may forbid it, or the
call may reach a limit that upstream would not have met. Upstream's own call then has to do the work.
"""

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
    """Whether ``error`` says that the call cannot be made here, and not what came of it.

    NotImplementedError is what Python raises where the C library has not got the call (``preadv2`` with musl).
    """
    return isinstance(error, NotImplementedError) or isinstance(error, OSError) and error.errno in _REFUSALS


def is_blocking(fd: int) -> bool:
    """``os.get_blocking(fd)``; True, which is always safe to believe, where that cannot be asked."""
    try:
        return os.get_blocking(fd)
    except OSError as error:
        if not refused(error):
            raise
        return True
