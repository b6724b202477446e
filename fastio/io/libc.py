"""Functions of the C library that report a failure by what they return, so that a native thread can call them.

See :mod:`fastio.concurrency.threads`. After a failure, the caller makes the same call as upstream would. That call
then succeeds, or raises what upstream raises. The arguments are objects of ctypes, which the caller makes.
"""

import ctypes
import functools
import os
from collections.abc import Callable
from typing import Any

#: ``cachestat(2)``, Linux 6.5; the same number on all machines but Alpha.
_SYS_CACHESTAT = 451
_PAGE = 4096
_INT = ctypes.c_int


@functools.cache
def _function(name: str, result: Any = ctypes.c_ssize_t) -> Callable[..., int] | None:
    """``name`` of the C library, or the one with offsets of 64 bits; None if it has none."""
    try:
        library = ctypes.CDLL(None)
        function = getattr(library, name + "64", None) or getattr(library, name)
    except (OSError, AttributeError):
        return None
    function.restype = result
    found: Callable[..., int] = function
    return found


def _call(name: str, *arguments: Any, result: Any = ctypes.c_ssize_t) -> tuple[Any, ...] | None:
    """The function and its arguments; None where the C library has not got it."""
    function = _function(name, result)
    return None if function is None else (function, *arguments)


def _rest(data: bytes, start: int) -> tuple[Any, Any]:
    """Where the bytes of ``data`` from ``start`` on are, and how many."""
    address = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0
    return ctypes.c_void_p(address + start), ctypes.c_size_t(len(data) - start)


def pread(fd: int, size: int, offset: int) -> tuple[Any, ...] | None:
    """A call that reads ``size`` bytes at ``offset`` and forgets them: they are in the page cache then."""
    buffer = ctypes.create_string_buffer(size)
    return _call("pread", ctypes.c_int(fd), buffer, ctypes.c_size_t(size), ctypes.c_int64(offset))


def write(fd: int, data: Any, start: int) -> tuple[Any, ...] | None:
    """A call that writes the bytes of ``data`` from ``start`` on, and returns how many; below 0 is a failure.

    :param data: bytes, which the call keeps
    """
    return _call("write", ctypes.c_int(fd), *_rest(data, start), data)


def pwrite(fd: int, data: bytes, start: int, offset: int) -> tuple[Any, ...] | None:
    """The same at ``offset`` of the file: made twice, it is as made once."""
    return _call("pwrite", ctypes.c_int(fd), *_rest(data, start), ctypes.c_int64(offset), data)


def open_at(directory: int, name: str, flags: int, mode: int = 0) -> tuple[Any, ...] | None:
    """A call that opens a file of a directory, and returns its descriptor; below 0 is a failure."""
    encoded = ctypes.c_char_p(os.fsencode(name))
    return _call("openat", ctypes.c_int(directory), encoded, ctypes.c_int(flags), ctypes.c_uint(mode), result=_INT)


def unlink_at(directory: int, name: str) -> tuple[Any, ...] | None:
    """A call that removes a file of a directory; below 0 is a failure."""
    return _call("unlinkat", ctypes.c_int(directory), ctypes.c_char_p(os.fsencode(name)), ctypes.c_int(0), result=_INT)


def rename_at(directory: int, old: str, new: str) -> tuple[Any, ...] | None:
    """A call that renames a file within a directory, in place of what had the name; below 0 is a failure."""
    first, second = (ctypes.c_char_p(os.fsencode(name)) for name in (old, new))
    fd = ctypes.c_int(directory)
    return _call("renameat", fd, first, fd, second, result=_INT)


def change_mode(fd: int, mode: int) -> tuple[Any, ...] | None:
    """A call that sets the permissions of a file; below 0 is a failure."""
    return _call("fchmod", ctypes.c_int(fd), ctypes.c_uint(mode), result=_INT)


def entries(fd: int, buffer: Any) -> tuple[Any, ...] | None:
    """A call that reads the next entries of a directory into ``buffer``, and returns how many bytes they take."""
    return _call("getdents64", ctypes.c_int(fd), buffer, ctypes.c_size_t(len(buffer)))


def open_file(path: str, flags: int, mode: int) -> tuple[Any, ...] | None:
    """A call that opens a file, and returns its descriptor; below 0 is a failure."""
    encoded = ctypes.c_char_p(os.fsencode(path))
    return _call("open", encoded, ctypes.c_int(flags), ctypes.c_uint(mode), result=ctypes.c_int)


def truncate(fd: int, size: int) -> tuple[Any, ...] | None:
    """A call that cuts off what a file has beyond ``size`` bytes; below 0 is a failure."""
    function = _function("ftruncate", ctypes.c_int)
    return None if function is None else (function, ctypes.c_int(fd), ctypes.c_int64(size))


def close(fd: int) -> tuple[Any, ...] | None:
    """A call that closes a descriptor, which is not to be closed again whatever comes of it."""
    return _call("close", ctypes.c_int(fd), result=ctypes.c_int)


def unlink(path: str) -> tuple[Any, ...] | None:
    """A call that removes a file; below 0 is a failure."""
    return _call("unlink", ctypes.c_char_p(os.fsencode(path)), result=ctypes.c_int)


class _Range(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_uint64), ("length", ctypes.c_uint64))


class _Cached(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("cached", "dirty", "writeback", "evicted", "recent"))


def missing_pages(fd: int, start: int, end: int) -> int | None:
    """How many pages of a file, those that have its bytes from ``start`` to ``end``, are not in the page cache.

    None where the system does not tell: before Linux 6.5, or for a file that is neither ours nor open for writing.
    """
    syscall = _function("syscall")
    if syscall is None:
        return None
    found = _Cached()
    first = start - start % _PAGE
    wanted = _Range(first, end - first)
    result = syscall(
        ctypes.c_long(_SYS_CACHESTAT), ctypes.c_int(fd), ctypes.byref(wanted), ctypes.byref(found), ctypes.c_uint(0)
    )
    return None if result else max(0, -(-(end - first) // _PAGE) - found.cached)
