"""Files that are written whole: who reads one sees what it was before or what it is now, and nothing between."""

import contextlib
import os
import posix  # what os has, also where eventlet has replaced it
from typing import Any

from fastio.concurrency import offload
from fastio.io import libc

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
#: Of the file that takes the place of the other; no collector reads it.
NEW = ".new"


def replace(path: str, data: bytes, permissions: int, here: bool = False) -> None:
    """Have the file ``path`` hold ``data``. Other greenlets run meanwhile. One writer at a time may write a path.

    :param here: make the calls in this thread, also where it has a hub: the process ends
    :raises OSError: if it cannot be written; then it is as it was
    """
    new = path + NEW
    fd = _call(here, libc.open_file(new, _FLAGS, permissions))
    if fd < 0:
        fd = posix.open(new, _FLAGS, permissions)
    try:
        try:
            start = 0
            while start < len(data):
                count = _call(here, libc.pwrite(fd, data, start, start))
                start += count if count > 0 else posix.pwrite(fd, data[start:], start)
        finally:
            if (call := libc.close(fd)) is None:
                posix.close(fd)
            else:
                _call(here, call)
        if _call(here, libc.rename(new, path)) < 0:
            posix.rename(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            posix.unlink(new)
        raise


def _call(here: bool, call: tuple[Any, ...] | None) -> int:
    if call is None:
        return -1
    result: int = call[0](*call[1:]) if here else offload.run(*call)
    return result
