"""Files and block devices, which eventlet takes for always ready: read and written without holding the hub."""

from __future__ import annotations

import errno
import functools
import os
import stat
from typing import Any

from fastio import config
from fastio.patches import _fair, _offload, _zeros

_NOWAIT = getattr(os, "RWF_NOWAIT", 0)
_UNSUPPORTED = {errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}

#: File systems that have nothing but the page cache, and so never wait; not all of them know RWF_NOWAIT.
_IN_MEMORY = {"tmpfs", "ramfs", "hugetlbfs"}

#: A write of this size takes about as long as handing it to a thread and coming back.
_SMALL = 64 * 1024


@functools.lru_cache(maxsize=64)
def _in_memory(device: int) -> bool:
    """Whether the file system with this ``st_dev`` is one that never waits."""
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open("/proc/self/mountinfo") as mounts:
            for line in mounts:
                fields, _, rest = line.partition(" - ")
                if fields.split()[2] == number:
                    return rest.split()[0] in _IN_MEMORY
    except OSError:
        pass
    return False


class InMemory:
    """Tells whether bytes of a file can be had without waiting for a disk or a file server."""

    def __init__(self, fileno: int) -> None:
        self._fileno = fileno
        self._nowait = bool(_NOWAIT)
        self._memory: bool | None = None

    def until(self, end: int) -> bool:
        """Whether the bytes before ``end`` are in memory: their last one is, and the kernel reads in order."""
        if self._nowait:
            try:
                os.preadv(self._fileno, [bytearray(1)], end - 1, _NOWAIT)
            except BlockingIOError:
                return False
            except OSError as error:
                if error.errno not in _UNSUPPORTED:
                    return True
                self._nowait = False
            else:
                return True
        if self._memory is None:
            self._memory = _in_memory(os.fstat(self._fileno).st_dev)
        return self._memory


class _File(_fair.Fair):
    """A binary file. The bytes, exceptions and position are the file's own; a read may return less than was asked."""

    __slots__ = ("_fastio_memory",)

    def __init__(self, wrapped: Any, pace: _fair.Pace) -> None:
        super().__init__(wrapped, pace)
        object.__setattr__(self, "_fastio_memory", None)

    def read(self, size: int = -1) -> Any:
        file = self.__wrapped__
        settings = config.effective()
        if size < 0 or size > settings.yield_bytes:
            return _offload.run(file.read, size)
        size = min(size, _fair.share())
        if self._fastio_at_hand(size):
            return file.read(size)
        return _offload.run(file.read, size)

    def write(self, data: Any) -> Any:
        write = self.__wrapped__.write
        return write(data) if len(data) <= _SMALL else _offload.run(write, data)

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> Any:
        # Where a file server is asked to have all of it by now.
        return _offload.run(self.__wrapped__.__exit__, kind, error, traceback)

    def _fastio_at_hand(self, size: int) -> bool:
        """Whether the next ``size`` bytes are in memory."""
        file = self.__wrapped__
        if self._fastio_memory is None:
            object.__setattr__(self, "_fastio_memory", InMemory(file.fileno()))
        return self._fastio_memory.until(file.tell() + size)


def wrap(file: Any) -> Any:
    """``file`` or, where greenlets may be and it is a regular file or a block device, what stands for it."""
    if not _fair.is_green():
        return file
    try:
        mode = os.fstat(file.fileno()).st_mode
    except (AttributeError, OSError, ValueError):
        return file
    if not stat.S_ISREG(mode) and not stat.S_ISBLK(mode):
        return file
    return _fair.stand_in(file, _fair.Pace(), _File)


class Thin:
    """A file written in order, in which runs of zeros become holes."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, data: Any) -> int:
        if type(data) is not bytes:
            return self._file.write(data)
        for start, end, hole in _zeros.runs(data):
            if hole:
                self._file.truncate(self._file.tell() + end - start)
                self._file.seek(0, os.SEEK_END)
            else:
                self._file.write(data if end - start == len(data) else memoryview(data)[start:end])
        return len(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> Thin:
        self._file = self._file.__enter__()
        return self

    def __exit__(self, *exc_info: Any) -> Any:
        return self._file.__exit__(*exc_info)
