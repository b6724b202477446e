"""Sends the bytes of a file to a socket without reading them: from a mapping on the same host, else by the kernel."""

import contextlib
import errno
import os
from typing import Any

from fastio.io import mapped

#: Errors with which a connection fails.
_OF_CONNECTION = {
    errno.EPIPE, errno.ECONNRESET, errno.ECONNABORTED, errno.ENOTCONN, errno.ETIMEDOUT, errno.EBADF,
    errno.ESHUTDOWN, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN,
}  # fmt: skip


def is_local(connection: Any) -> bool:
    """Whether the client is on this host: both ends have the same address."""
    try:
        return connection.getpeername()[:1] == connection.getsockname()[:1]
    except OSError:
        return False


def is_of_connection(error: OSError, file: int, position: int) -> bool:
    """Whether what sending has failed with is the connection's: a file system may fail with the same number.

    :param position: where the bytes to be sent begin
    """
    if error.errno not in _OF_CONNECTION:
        return False
    try:
        os.pread(file, 1, position)
    except OSError:
        return False
    return True


def send(out: int, file: int, position: int, count: int, mapping: bool) -> int:
    """Send up to ``count`` bytes of ``file`` from ``position`` on; returns how many were sent, 0 at the file's end.

    :param out: descriptor of a socket
    :param file: descriptor of a file
    :param count: at least 1
    :param mapping: from a mapping, if that can be; for a client on this host, see :mod:`fastio.io.mapped`
    :raises OSError: what sending has failed with, see :func:`is_of_connection`
    """
    if mapping:
        with contextlib.suppress(mapped.NotMapped):
            return mapped.send(out, file, position, count)
    return os.sendfile(out, file, position, count)
