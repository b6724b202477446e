"""Writing a child's input in large slices, without ever waiting in the kernel."""

from __future__ import annotations

import contextlib
import os
import select
import stat
from posix import write as _write  # os.write may have been replaced by a green one, which hides EPIPE

from fastio import counters
from fastio.io import pipes, syscalls

_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)
_PIPE_BUF = getattr(select, "PIPE_BUF", 512)


class Feed:
    """One input of a child.

    A blocking descriptor must stay blocking: its open file description may be shared with another
    process, which would suddenly see EAGAIN. The write itself is made non-blocking (``pwritev2``
    with ``RWF_NOWAIT``, which pipes know since Linux 6.5). On older kernels, and where a filter or
    the C library does not allow it, the pipe is opened a second time through /proc, which gives an
    open file description for this process. Where that fails too the slices are those of the standard
    library (PIPE_BUF bytes never block once poll says that the pipe is writable).

    :param fd: writable descriptor, blocking or not
    :param data: to write, bytes-like of single bytes
    :param offset: bytes of ``data`` that are written already
    :param pipe_size: as a :class:`fastio.io.drain.Drain` has it
    """

    __slots__ = ("fd", "offset", "chunk_size", "may_block", "nonblocking", "_data", "_growth", "_nowait", "_out")

    def __init__(self, fd: int, data: memoryview, offset: int, chunk_size: int, pipe_size: int) -> None:
        self.fd = fd
        self.offset = offset
        self.chunk_size = chunk_size
        #: a second write without a wait in between could block in the kernel
        self.may_block = False
        self._data = data
        #: where to write: ``fd``, or an open file description of this object's own
        self._out = fd
        self._growth = pipes.Growth(fd, pipe_size)
        if len(data) - offset > pipes.DEFAULT_CAPACITY:
            self._growth.ask()
        #: a write never waits in the kernel, whether or not the pipe has room
        self.nonblocking = not syscalls.is_blocking(fd)
        self._nowait = not self.nonblocking and bool(_NOWAIT)
        if not self.nonblocking and not self._nowait:
            self._fall_back()

    @property
    def done(self) -> bool:
        """All is written."""
        return self.offset >= len(self._data)

    def move(self, limit: int) -> int:
        """Write once, at most ``limit`` bytes; returns how many the pipe took.

        :raises BlockingIOError: the pipe is full
        :raises BrokenPipeError: the pipe has no reader any more
        """
        count = self._write(limit)
        self.offset += count
        if len(self._data) - self.offset > pipes.DEFAULT_CAPACITY:
            self._growth.ask()
        counters.io.writes += 1
        counters.io.bytes_out += count
        return count

    def close(self) -> None:
        """Give back the data and what this object opened; ``fd`` itself belongs to the caller."""
        self._data.release()
        if self._out != self.fd:
            os.close(self._out)
            self._out = self.fd

    def _write(self, limit: int) -> int:
        if self._nowait:
            try:
                return os.pwritev(self.fd, [self._next(limit)], -1, _NOWAIT)
            except BlockingIOError:
                raise
            except (OSError, NotImplementedError) as error:
                if not syscalls.refused(error):
                    raise
            self._nowait = False
            self._fall_back()
        return _write(self._out, self._next(limit))

    def _next(self, limit: int) -> memoryview:
        return self._data[self.offset : self.offset + min(limit, self.chunk_size)]

    def _fall_back(self) -> None:
        if stat.S_ISFIFO(os.fstat(self.fd).st_mode):
            with contextlib.suppress(OSError):
                self._out = os.open(f"/proc/self/fd/{self.fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                return
        self.may_block = True
        self.chunk_size = min(self.chunk_size, _PIPE_BUF)
