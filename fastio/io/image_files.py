"""Reads and writes files and block devices, which eventlet treats as always ready, without blocking the hub."""

from __future__ import annotations

import fcntl
import os
import stat
import sys
from typing import Any

from fastio import config, counters
from fastio.concurrency import current, offload
from fastio.concurrency.pace import SHARE, Pace, share
from fastio.counters import Reason, Tally
from fastio.io import libc, paced, scratch, sparse, syscalls
from fastio.proxy import Proxy

_NOWAIT = getattr(os, "RWF_NOWAIT", 0)

#: A write of this size takes about as long as handing it to a thread and coming back.
SMALL = 64 * 1024

#: Where the kernel does not count pages every so many bytes are looked at: half of what it reads ahead at the least.
_PROBED = 64 * 1024


def _in_memory(fileno: int) -> bool:
    """Whether a file has nothing but the page cache, and so never waits: one of tmpfs or hugetlbfs has seals."""
    try:
        fcntl.fcntl(fileno, fcntl.F_GET_SEALS)
    except OSError:
        return False
    return True


class InMemory:
    """Tells whether bytes of a file can be had without waiting for a disk or a file server."""

    def __init__(self, fileno: int) -> None:
        self._fileno = fileno
        self._nowait = bool(_NOWAIT)
        self._counts = True
        #: whether it is on a file system that never waits; None until that is known
        self.never_waits: bool | None = None

    def has(self, start: int, end: int) -> bool:
        """Whether all bytes from ``start`` up to ``end``, or to the end of the file before it, are in memory."""
        status = os.fstat(self._fileno)
        if self.never_waits is None:
            self._is_there(start)
            # Not all of these know RWF_NOWAIT.
            self.never_waits = not self._nowait and _in_memory(self._fileno)
        if stat.S_ISREG(status.st_mode):
            end = min(end, status.st_size)
        return self.has_here(start, end)

    def has_here(self, start: int, end: int) -> bool:
        """Like :meth:`has`, of bytes before the file's end, without asking its file system; called after it."""
        if self.never_waits or end <= start:
            return True
        # A page that is being read counts as there, and the kernel reads in order. A look at a page that is not there
        # may have the disk read it.
        return self._nowait and self._are_there(start, end) and self._is_there(end - 1)

    def _is_there(self, position: int) -> bool:
        """Whether the byte at ``position`` is in memory; False where the system does not tell."""
        if self._nowait:
            try:
                os.preadv(self._fileno, [bytearray(1)], position, _NOWAIT)
            except BlockingIOError:
                return False
            except (OSError, NotImplementedError) as error:
                # Other errors are for the read itself to tell.
                self._nowait = not syscalls.refused(error)
            else:
                return True
        return False

    def _are_there(self, start: int, end: int) -> bool:
        """Whether no page between the two was taken out of memory again."""
        if self._counts:
            missing = libc.missing_pages(self._fileno, start, end)
            if missing is not None:
                return not missing
            self._counts = False
        return all(self._is_there(position) for position in range(start, end, _PROBED))


class _File(paced.Fair):
    """A binary file. The bytes, exceptions and position are the file's own; a read may return less than was asked."""

    __slots__ = ("_fastio_memory",)

    def __init__(self, wrapped: Any, pace: Pace) -> None:
        super().__init__(wrapped, pace)
        object.__setattr__(self, "_fastio_memory", InMemory(wrapped.fileno()))

    def read(self, size: int = -1) -> Any:
        if size is None or size < 0:
            return self._fastio_read_all(sys.maxsize)
        if size > config.effective().yield_bytes:
            return self._fastio_read_all(size)
        data = self._fastio_read(min(size, share()))
        self._fastio_pace.counts.moved(len(data))
        return data

    def _fastio_read(self, size: int) -> Any:
        file = self.__wrapped__
        position = file.tell()
        fetch(file.fileno(), self._fastio_memory, position, position + size)
        return file.read(size)

    def _fastio_read_all(self, size: int) -> bytes:
        """More than may be read in one turn: ``size`` bytes, or up to the end of the file."""
        pace, parts = self._fastio_pace, []
        while size > 0:
            pace.yield_when_due()
            part = self._fastio_read(min(size, pace.left))
            if not part:
                break
            pace.moved(len(part))
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def write(self, data: Any) -> Any:
        file = self.__wrapped__
        if len(data) <= SMALL:
            return file.write(data)
        data = data if type(data) is bytes else bytes(data)
        # The file's own buffer comes first.
        file.flush()
        try:
            # Another greenlet may close the file before a thread writes, and its number be a stranger's then.
            fd = os.dup(file.fileno())
        except OSError:
            self._fastio_pace.counts.fell_back(Reason.REFUSED)
            return file.write(data)
        written = 0
        try:
            while written < len(data):
                call = libc.write(fd, data, written)
                count = -1 if call is None else offload.run(*call)
                if count <= 0:
                    self._fastio_pace.counts.fell_back(Reason.REFUSED)
                    # It succeeds now, or raises what upstream would have raised.
                    return written + file.write(data[written:])
                written += count
                self._fastio_pace.counts.moved(count)
        finally:
            os.close(fd)
        return written


def fetch(fileno: int, memory: InMemory, start: int, end: int) -> None:
    """Have the bytes from ``start`` to ``end`` of a file in memory, so that no greenlet waits for them in the hub."""
    if not memory.has(start, end):
        # The bytes are forgotten: they are in the page cache then.
        call = libc.pread(fileno, scratch.allocate(end - start), start)
        if call is not None:
            offload.run(*call)


def wrap(file: Any, counts: Tally = counters.UNCOUNTED, whole: bool = False) -> Any:
    """``file`` or, where greenlets may be and it is a regular file or a block device, its proxy.

    :param counts: of the patch that it is for
    :param whole: whether it is read, and has all of its data: then it stands for itself if that is in memory, and no
        more than a transfer may move before it yields
    """
    if not current.is_green():
        return file
    try:
        status = os.fstat(file.fileno())
    except (AttributeError, OSError, ValueError):
        return file
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISBLK(status.st_mode):
        return file
    small = stat.S_ISREG(status.st_mode) and status.st_size <= min(SHARE, config.effective().yield_bytes)
    if whole and small and InMemory(file.fileno()).has(0, status.st_size):
        return file
    return paced.stand_in(file, Pace(counts=counts), _File)


class Thin(Proxy):
    """A file written in order, in which runs of zeros become holes."""

    def write(self, data: Any) -> int:
        if type(data) is not bytes:
            return self.__wrapped__.write(data)
        for start, end, hole in sparse.runs(data):
            if hole:
                self.__wrapped__.truncate(self.__wrapped__.tell() + end - start)
                self.__wrapped__.seek(0, os.SEEK_END)
            else:
                self.__wrapped__.write(data if end - start == len(data) else memoryview(data)[start:end])
        return len(data)

    def __enter__(self) -> Thin:
        self.__wrapped__ = self.__wrapped__.__enter__()
        return self

    def __exit__(self, *exc_info: Any) -> Any:
        return self.__wrapped__.__exit__(*exc_info)
