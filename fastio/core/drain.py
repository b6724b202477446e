"""Reading what a child writes, into one growing result."""

from __future__ import annotations

import io
import os

from fastio import counters
from fastio.core import budget, pipes, scratch


class Drain:
    """One output of a child.

    The bytes are gathered in a :class:`io.BytesIO`: it grows by realloc, which for large sizes
    moves page tables and not bytes, and ``getvalue()`` hands its buffer over uncopied. So the
    payload is in memory once, where a list of chunks and their join have it twice.

    :param fd: readable descriptor, blocking or not
    :param chunk_size: bytes asked for in one read
    :param pipe_size: capacity asked of the kernel once the child shows that it has much to say, for
        one active transfer; a short answer costs no extra system call and nothing of the user's
        pipe memory (``pipe-user-pages-soft``)
    """

    __slots__ = ("fd", "chunk_size", "pipe_size", "nonblocking", "eof", "emptied", "_sink", "_grown")

    def __init__(self, fd: int, chunk_size: int, pipe_size: int) -> None:
        self.fd = fd
        self.chunk_size = chunk_size
        self.pipe_size = pipe_size
        self.nonblocking = not os.get_blocking(fd)
        self.eof = False
        #: the last read got less than it asked for, so nothing was left
        self.emptied = False
        self._sink = io.BytesIO()
        self._grown = False

    def read(self, limit: int) -> int:
        """Read once, at most ``limit`` bytes; returns their number, sets ``eof`` at the end.

        :raises BlockingIOError: nothing is there now (only on a non-blocking descriptor)
        """
        # The first reads come from a default pipe, and are mostly the only ones.
        size = min(limit, self.chunk_size)
        if not self._grown:
            size = min(size, pipes.DEFAULT_CAPACITY)
        buffer = scratch.borrow(size)
        try:
            count = os.readv(self.fd, [buffer[:size]])
            counters.reads += 1
            if count == 0:
                self.eof = True
                return 0
            self._sink.write(buffer[:count])
        finally:
            scratch.give_back(buffer)
        self.emptied = count < size
        counters.bytes_in += count
        if not self._grown and count >= min(self.chunk_size, pipes.DEFAULT_CAPACITY // 2):
            self._grown = True
            pipes.grow(self.fd, budget.shared.pipe_size(self.pipe_size))
        return count

    def take(self) -> bytes:
        """The bytes read since the last ``take()``."""
        value = self._sink.getvalue()
        self._sink = io.BytesIO()
        return value
