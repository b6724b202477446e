"""Reading what a child writes, into one growing result."""

import io
import os
from posix import read as _read  # os.read may have been replaced by a green one, which waits

from fastio import counters
from fastio.io import pipes, scratch, syscalls

#: Bytes that a reader asks for at the least, as the standard library does. The kernel discards what a read leaves of a
#: packet (``O_DIRECT``, ``SOCK_SEQPACKET``).
LEAST = 32768


class Drain:
    """One output of a child.

    The bytes are gathered in a :class:`io.BytesIO`: it grows by realloc, which for large sizes
    moves page tables and not bytes, and ``getvalue()`` hands its buffer over uncopied. The payload is in memory once,
    where a list of chunks and their join have it twice.

    :param fd: readable descriptor, blocking or not
    :param chunk_size: bytes asked for in one read
    :param pipe_size: capacity asked of the kernel once the child shows that it has much to say, for
        one active transfer; a short answer costs no extra system call and nothing of the user's
        pipe memory (``pipe-user-pages-soft``). 0 leaves the pipe unchanged
    """

    __slots__ = ("fd", "chunk_size", "done", "may_block", "total", "_nonblocking", "_sink", "_growth", "_has_much")

    def __init__(self, fd: int, chunk_size: int, pipe_size: int) -> None:
        self.fd = fd
        self.chunk_size = chunk_size
        #: the end of file has been read
        self.done = False
        #: another read without a wait in between could block in the kernel, or would find nothing
        self.may_block = False
        #: bytes that were read
        self.total = 0
        self._nonblocking = not syscalls.is_blocking(fd)
        self._sink = io.BytesIO()
        self._growth = pipes.Growth(fd, pipe_size)
        self._has_much = False

    def move(self, limit: int) -> int:
        """Read once, at most ``limit`` bytes; returns their number, sets ``done`` at the end.

        :raises BlockingIOError: nothing is there now (only on a non-blocking descriptor)
        """
        # The first reads come from a default pipe, and are mostly the only ones.
        size = min(limit, self.chunk_size)
        if not self._has_much:
            size = min(size, pipes.DEFAULT_CAPACITY)
        buffer = scratch.borrow(size)
        count = 0
        try:
            count = os.readv(self.fd, [buffer[:size]])
        except BlockingIOError:
            raise
        except OSError as error:
            if not syscalls.refused(error):
                raise
            data = _read(self.fd, size)
            count = len(data)
            buffer[:count] = data
        finally:
            # Also where a signal handler raises after the read.
            self._sink.write(buffer[:count])
            scratch.give_back(buffer)
        counters.io.reads += 1
        if count == 0:
            self.done = True
            return 0
        # With less than was asked for nothing is left.
        self.may_block = count < size or not self._nonblocking
        self.total += count
        counters.io.bytes_in += count
        if count >= min(self.chunk_size, pipes.DEFAULT_CAPACITY // 2):
            self._has_much = True
            self._growth.ask()
        return count

    def take(self) -> bytes:
        """The bytes read since the last ``take()``; another thread or a signal handler may call it during a read."""
        sink, self._sink = self._sink, io.BytesIO()
        return sink.getvalue()
