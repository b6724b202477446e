"""Writing a child's input in large slices, without ever waiting in the kernel."""

from __future__ import annotations

import os
import select
import stat
from collections.abc import Callable
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

    __slots__ = ("fd", "offset", "chunk_size", "may_block", "nonblocking", "_data", "_growth", "_own_fd", "_write_some")

    def __init__(self, fd: int, data: memoryview, offset: int, chunk_size: int, pipe_size: int) -> None:
        self.fd = fd
        self.offset = offset
        self.chunk_size = chunk_size
        # How to write: a function and no bound method, which would keep this object and the data alive.
        self._write_some: Callable[[Feed, memoryview], int]
        #: a second write without a wait in between could block in the kernel
        self.may_block = False
        self._data = data
        self._own_fd = -1
        self._growth = pipes.Growth(fd, pipe_size)
        if len(data) - offset > pipes.DEFAULT_CAPACITY:
            self._growth.ask()
        #: a write never waits in the kernel, whether or not the pipe has room
        self.nonblocking = not syscalls.is_blocking(fd)
        if self.nonblocking:
            self._write_some = Feed._write_nonblocking
        elif _NOWAIT:
            self._write_some = Feed._write_nowait
        else:
            self._write_some = self._choose_fallback()

    @property
    def done(self) -> bool:
        """All is written."""
        return self.offset >= len(self._data)

    def move(self, limit: int) -> int:
        """Write once, at most ``limit`` bytes; returns how many the pipe took.

        :raises BlockingIOError: the pipe is full
        :raises BrokenPipeError: the pipe has no reader any more
        """
        end = self.offset + min(limit, self.chunk_size)
        count = self._write_some(self, self._data[self.offset : end])
        self.offset += count
        if len(self._data) - self.offset > pipes.DEFAULT_CAPACITY:
            self._growth.ask()
        counters.io.writes += 1
        counters.io.bytes_out += count
        return count

    def close(self) -> None:
        """Give back the data and what this object opened; ``fd`` itself belongs to the caller."""
        self._data.release()
        if self._own_fd >= 0:
            os.close(self._own_fd)
            self._own_fd = -1

    def _write_nonblocking(self, data: memoryview) -> int:
        return _write(self.fd, data)

    def _write_nowait(self, data: memoryview) -> int:
        try:
            return os.pwritev(self.fd, [data], -1, _NOWAIT)
        except BlockingIOError:
            raise
        except (OSError, NotImplementedError) as error:
            if not syscalls.refused(error):
                raise
        self._write_some = self._choose_fallback()
        return self._write_some(self, data)

    def _choose_fallback(self) -> Callable[[Feed, memoryview], int]:
        if stat.S_ISFIFO(os.fstat(self.fd).st_mode):
            try:
                self._own_fd = os.open(f"/proc/self/fd/{self.fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError:
                pass
            else:
                return Feed._write_own
        self.may_block = True
        return Feed._write_pipe_buf

    def _write_own(self, data: memoryview) -> int:
        return _write(self._own_fd, data)

    def _write_pipe_buf(self, data: memoryview) -> int:
        return _write(self.fd, data[:_PIPE_BUF])
