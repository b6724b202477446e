"""Functions of the C library that report a failure by what they return, so that a native thread can call them.

See :mod:`fastio.concurrency.threads`. After a failure, the caller makes upstream's call. That call
then succeeds, or raises what upstream raises. The arguments are objects of ctypes, which the caller makes.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from typing import Any, TypeVar

with contextlib.suppress(ImportError):
    # Not every Python is built with it.
    import ctypes

F = TypeVar("F", bound=Callable[..., Any])

#: In place of a directory: names begin at the current one. A path that begins at the root needs none.
AT_FDCWD = -100
#: ``cachestat(2)``, Linux 6.5; the same number on all machines but Alpha.
_SYS_CACHESTAT = 451
_PAGE = 4096


def _with_ctypes(function: F) -> F:
    """``function``, or one that returns None where there is no ctypes."""
    return function if "ctypes" in globals() else lambda *args: None  # type: ignore[return-value]


@functools.cache
def _function(name: str, result: str = "c_ssize_t") -> Callable[..., int] | None:
    """``name`` of the C library, or the one with offsets of 64 bits; None if it has none."""
    try:
        library = ctypes.CDLL(None)
        function = getattr(library, name + "64", None) or getattr(library, name)
    except (OSError, AttributeError):
        return None
    function.restype = getattr(ctypes, result)
    found: Callable[..., int] = function
    return found


def _call(name: str, *arguments: Any, result: str = "c_ssize_t") -> tuple[Any, ...] | None:
    """The function and its arguments; None where the C library has not got it."""
    function = _function(name, result)
    return None if function is None else (function, *arguments)


def _rest(data: bytes, start: int) -> tuple[Any, Any]:
    """Where the bytes of ``data`` from ``start`` on are, and how many."""
    address = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0
    return ctypes.c_void_p(address + start), ctypes.c_size_t(len(data) - start)


@_with_ctypes
def pread(fd: int, buffer: memoryview, offset: int) -> tuple[Any, ...] | None:
    """A call that reads what is at ``offset`` of a file into ``buffer``."""
    room = (ctypes.c_char * len(buffer)).from_buffer(buffer)
    return _call("pread", ctypes.c_int(fd), room, ctypes.c_size_t(len(buffer)), ctypes.c_int64(offset))


@_with_ctypes
def write(fd: int, data: Any, start: int) -> tuple[Any, ...] | None:
    """A call that writes the bytes of ``data`` from ``start`` on, and returns how many; below 0 is a failure.

    :param data: bytes, which the call keeps
    """
    return _call("write", ctypes.c_int(fd), *_rest(data, start), data)


@_with_ctypes
def open_at(directory: int, name: str, flags: int, mode: int = 0) -> tuple[Any, ...] | None:
    """A call that opens a file of a directory, and returns its descriptor; below 0 is a failure."""
    encoded = ctypes.c_char_p(os.fsencode(name))
    return _call("openat", ctypes.c_int(directory), encoded, ctypes.c_int(flags), ctypes.c_uint(mode), result="c_int")


@_with_ctypes
def unlink_at(directory: int, name: str) -> tuple[Any, ...] | None:
    """A call that removes a file of a directory; below 0 is a failure."""
    return _call(
        "unlinkat", ctypes.c_int(directory), ctypes.c_char_p(os.fsencode(name)), ctypes.c_int(0), result="c_int"
    )


@_with_ctypes
def rename_at(directory: int, old: str, new: str) -> tuple[Any, ...] | None:
    """A call that renames a file within a directory, in place of what had the name; below 0 is a failure."""
    first, second = (ctypes.c_char_p(os.fsencode(name)) for name in (old, new))
    fd = ctypes.c_int(directory)
    return _call("renameat", fd, first, fd, second, result="c_int")


@_with_ctypes
def change_mode(fd: int, mode: int) -> tuple[Any, ...] | None:
    """A call that sets the permissions of a file; below 0 is a failure."""
    return _call("fchmod", ctypes.c_int(fd), ctypes.c_uint(mode), result="c_int")


@_with_ctypes
def entries(fd: int, size: int) -> tuple[Any, ...] | None:
    """A call that reads the next entries of a directory into its second argument, and returns their size."""
    return _call("getdents64", ctypes.c_int(fd), ctypes.create_string_buffer(size), ctypes.c_size_t(size))


@_with_ctypes
def close(fd: int) -> tuple[Any, ...] | None:
    """A call that closes a descriptor, which is not to be closed again whatever comes of it."""
    return _call("close", ctypes.c_int(fd), result="c_int")


@_with_ctypes
def missing_pages(fd: int, start: int, end: int) -> int | None:
    """How many pages of a file, those that have its bytes from ``start`` to ``end``, are not in the page cache.

    None where the system does not tell: before Linux 6.5, or for a file that is neither ours nor open for writing.
    """
    syscall = _function("syscall")
    if syscall is None:
        return None
    first = start - start % _PAGE
    # struct cachestat_range: offset and length; struct cachestat: pages in the cache, dirty, and three more.
    wanted, found = (ctypes.c_uint64 * 2)(first, end - first), (ctypes.c_uint64 * 5)()
    result = syscall(ctypes.c_long(_SYS_CACHESTAT), ctypes.c_int(fd), wanted, found, ctypes.c_uint(0))
    return None if result else max(0, -(-(end - first) // _PAGE) - found[0])
