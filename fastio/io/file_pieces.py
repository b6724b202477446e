"""Pieces of a file in place of their bytes, so that the kernel can send them.

Between the file of an image and the server's socket, upstream has generators that only count the length of a chunk. A
piece has a length, too: all of that code runs unchanged, and only its two ends change: the file's ``read()`` returns a
piece, and the server lets the kernel send it.
"""

from __future__ import annotations

import os
import stat
from typing import Any

from fastio.io import image_files
from fastio.proxy import Proxy


class Piece:
    """Some bytes of a file from a position on. The length is that of what was sent, once it has been."""

    __slots__ = ("file", "_start", "_size", "sent", "ended")

    def __init__(self, file: PieceFile, start: int, size: int) -> None:
        self.file = file
        self._start = start
        self._size = size
        #: how many bytes of it have been sent
        self.sent = 0
        #: whether no more of it will be sent
        self.ended = False

    def __len__(self) -> int:
        return self.sent if self.ended else self._size

    @property
    def position(self) -> int:
        """Where in the file the rest of it begins."""
        return self._start + self.sent

    @property
    def left(self) -> int:
        """How many bytes of it are still to be sent."""
        return self._size - self.sent


class PieceFile(Proxy):
    """Stands for the binary file of an image. Its ``read()`` is the file's own until pieces are asked for."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self._in_pieces = False
        self._last: Piece | None = None
        self._memory: image_files.InMemory | None = None
        #: the most that the first read returns
        self._first: int | None = None
        #: where in the file the first piece begins, once that was read
        self.begin: int | None = None
        #: pieces end here
        self.end: int | None = None

    @property
    def position(self) -> int:
        """Where the last piece ends, as far as it has been sent; once something was read."""
        assert self._last is not None
        return self._last.position

    def start(self, first: int | None = None) -> bool:
        """Return pieces from now on, if that can be; the first ``read()`` still returns bytes.

        Those go out together with the headers, and what a server does if there is nothing to be read, or the very
        first read fails, is not touched.

        :param first: the most that the first read returns, in bytes; by default what it is asked for
        """
        try:
            regular = stat.S_ISREG(os.fstat(self.__wrapped__.fileno()).st_mode)
        except (AttributeError, OSError, ValueError):
            return False
        if regular:
            self._memory = image_files.InMemory(self.__wrapped__.fileno())
            self._in_pieces = True
            self._first = first
        return regular

    def stop(self) -> None:
        """Return bytes again, from where the last piece ended."""
        self._in_pieces = False
        if self._last is not None:
            self.__wrapped__.seek(self._last.position)

    def read(self, size: int = -1) -> Any:
        if self._in_pieces and size < 0:
            self.stop()
        if not self._in_pieces:
            return self.__wrapped__.read(size)
        if self._last is None:
            self.begin = start = self.__wrapped__.tell()
            data = self.__wrapped__.read(size if self._first is None else min(size, self._first))
            self._last = Piece(self, start, len(data))
            self._last.sent = len(data)
            return data
        start = self._last.position
        end = os.fstat(self.__wrapped__.fileno()).st_size if self.end is None else self.end
        there = end - start
        if there <= 0:
            return b""
        self._last = Piece(self, start, min(size, there))
        return self._last

    def fetch(self, start: int, end: int) -> None:
        """Have these bytes in memory, so that they can be sent without waiting for a disk."""
        if self._memory is not None:
            image_files.fetch(self.__wrapped__.fileno(), self._memory, start, end)
