"""Reads a message of known length from its socket, bypassing the buffer through which its head was read.

A ``BufferedReader`` reads most of a large chunk directly into its place, and the rest through its buffer. Each piece
that the peer sends wakes it. From a plain socket, the kernel gathers data first, even if the socket has a time-out.
:mod:`fastio.io.lowwater` does not handle sockets with a time-out, because a time-out counts from one piece of data to
the next, and with a mark no piece is seen until the mark is reached. Here the mark is set only for a short time. After
that, whatever has arrived is read as it would have been without a mark, and the rest of the time-out applies. With
TLS, one record (16 KiB) at a time is decrypted, and nothing else is done for it.
"""

import fcntl
import io
import ssl
import struct
import termios
from collections.abc import Callable
from typing import Any, cast

from fastio.io import lowwater

#: Seconds for the kernel to gather. A peer that needs longer for half a MiB does not wake the reader often.
PATIENCE = 0.05
#: Bytes that a record of TLS can have, with its head and all that ciphers add: 2^14 and 2^11 before TLS 1.3, and 5.
RECORD = 16 * 1024 + 2048 + 5

Wait = Callable[[int, float], bool]


class Unbuffered(io.RawIOBase):
    """What a connection has for the reader of ``below``, first what is in its buffer already.

    Everything else is the ``SocketIO`` below the buffer.

    :param below: on a socket that blocks or has a time-out, be it in the hub
    :param before: called before data is read
    :param after: called with the number of bytes that were
    """

    def __init__(
        self, below: io.BufferedReader, before: Callable[[], None] | None, after: Callable[[int], None] | None
    ) -> None:
        self._below = below
        raw: Any = cast(Any, below.raw)
        self._raw = raw
        self._socket = raw._sock
        self._before = before
        self._after = after
        self._drained = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        # A slice of another buffer, as readall() gives, would be a copy.
        view = memoryview(buffer)
        if self._before is not None:
            self._before()
        count = self._read(view) if self._drained else self._drain(view)
        if self._after is not None:
            self._after(count or 0)
        return count

    def _drain(self, view: memoryview) -> int:
        """What is in the buffer; if that is nothing, one piece that came into it from the socket."""
        if not view:
            return 0
        # After a read1() that fills the view, more could be in the buffer. A fast peer fills every view.
        found = self._below.peek(1)
        data = self._below.read1(min(len(found), len(view)))
        self._drained = len(data) == len(found)
        view[: len(data)] = data
        return len(data)

    def _read(self, view: memoryview) -> int | None:
        raise NotImplementedError

    def fileno(self) -> int:
        return self._below.fileno()

    def close(self) -> None:
        try:
            self._below.close()
        finally:
            super().close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)


class Gathered(Unbuffered):
    """From a plain socket, with few wake-ups.

    :param wait: ``wait(fd, seconds)`` returns whether ``fd`` became readable in that time; called with the mark set
    """

    def __init__(
        self,
        below: io.BufferedReader,
        wait: Wait,
        before: Callable[[], None] | None = None,
        after: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__(below, before, after)
        self._wait = wait

    def _read(self, view: memoryview) -> int | None:
        wanted = min(len(view), lowwater.MOST)
        if wanted < lowwater.LEAST:
            return self._raw.readinto(view)
        timeout = self._socket.gettimeout()
        patience = PATIENCE if timeout is None else min(PATIENCE, timeout / 2)
        if self._gather(wanted, patience) or timeout is None:
            return self._raw.readinto(view)
        self._socket.settimeout(timeout - patience)
        try:
            return self._raw.readinto(view)
        finally:
            self._socket.settimeout(timeout)

    def _gather(self, wanted: int, patience: float) -> bool:
        """Have ``wanted`` bytes in the kernel, or an end of the connection; False if they have not come in time."""
        sock = self._socket
        try:
            before = None if _arrived(sock.fileno()) >= wanted else lowwater.swap(sock, wanted)
        except (OSError, ValueError):
            before = None
        if before is None:
            # It is all there, or the socket is closed, and reading says so.
            return True
        try:
            return self._wait(sock.fileno(), patience)
        finally:
            lowwater.swap(sock, before)


def _arrived(fd: int) -> int:
    """Bytes that the kernel has for the reader of ``fd``."""
    return struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, bytes(4)))[0]


class Decrypted(Unbuffered):
    """From an ``SSLSocket``: as many of OpenSSL's records as the chunk takes, without the layers above OpenSSL."""

    _ended = False

    def _read(self, view: memoryview) -> int | None:
        if self._ended:
            # The end, which came after the last data: nothing may be asked of OpenSSL between the two.
            self._ended = False
            return 0
        connection = self._socket._sslobj
        if connection is None:
            return self._raw.readinto(view)
        size, total = len(view), 0
        while total < size:
            count = self._read_record(connection, view[total:])
            if not count:
                self._ended = total > 0
                return total or count
            total += count
        return total

    def _read_record(self, connection: Any, view: memoryview) -> int | None:
        """Wait for a record and return how much of it there is now; 0 at the end."""
        try:
            return connection.read(len(view), view)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            # Under eventlet there is nothing now, and the socket knows how to wait.
            return self._raw.readinto(view)
        except ssl.SSLEOFError:
            if not self._socket.suppress_ragged_eofs:
                raise
            return 0


class Arrived(Decrypted):
    """The same, but records that have not arrived are not waited for once there is one."""

    _failed: Exception | None = None

    def _read(self, view: memoryview) -> int | None:
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed
        connection = self._socket._sslobj
        if self._ended or connection is None:
            return super()._read(view)
        total = self._read_record(connection, view) or 0
        while 0 < total < len(view) and (self._is_in_the_middle(connection) or self._has_more()):
            try:
                count = self._read_record(connection, view[total:])
            except Exception as error:
                # What came before it is good. Without its frames, which refer to this object.
                self._failed = error.with_traceback(None)
                break
            if not count:
                self._ended = True
                break
            total += count
        return total

    def _is_in_the_middle(self, connection: Any) -> bool:
        """Whether OpenSSL has decrypted more than it has given."""
        return connection.pending() > 0

    def _has_more(self) -> bool:
        """Whether the kernel has a complete record."""
        try:
            return _arrived(self._socket.fileno()) >= RECORD
        except (OSError, ValueError):
            return False


class Whole(io.RawIOBase):
    """``source`` in pieces of ``size`` bytes: each read returns one or several of them, and what has come of the next
    one is kept. The last piece, and what comes before an end, may be shorter.

    A reader's chunk must not go beyond the end of the message, so that the last piece fills it.
    """

    def __init__(self, source: Unbuffered, size: int) -> None:
        self._source = source
        self._size = size
        self._kept = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        # A slice of another buffer, as readall() gives, would be a copy.
        view = memoryview(buffer)
        total = len(self._kept)
        if total > len(view):
            view[:], self._kept = self._kept[: len(view)], self._kept[len(view) :]
            return len(view)
        view[:total], self._kept = self._kept, b""
        least = min(self._size, len(view))
        while total < least:
            count = self._source.readinto(view[total:])
            if not count:
                return total
            total += count
        rest = total % self._size if total < len(view) else 0
        self._kept = bytes(view[total - rest : total])
        return total - rest

    def fileno(self) -> int:
        return self._source.fileno()

    def close(self) -> None:
        try:
            self._source.close()
        finally:
            super().close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


class Pieces(io.BufferedReader):
    """The reader of what is in pieces; see :func:`reader`.

    :param raw: what to read from
    """

    #: whether ``read(size)`` is one read of ``raw``, rather than as many as ``size`` takes
    at_once = False

    def __init__(self, raw: Whole) -> None:
        super().__init__(raw, 1)

    def read(self, size: int | None = -1, /) -> bytes:
        return self.read1(-1 if size is None else size) if self.at_once else super().read(size)


def reader(raw: Unbuffered) -> io.BufferedReader:
    """``raw`` with the methods of a ``BufferedReader``, whose ``read()`` then reads all into its result's own place."""
    # The buffer takes one byte, so nothing is ever read ahead.
    return io.BufferedReader(raw, 1)
