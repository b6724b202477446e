"""Bodies of requests that are sent in few steps: proxies of a file while a client's library sends it.

Libraries that speak HTTP ask a file-like body for its next block, and send that. The proxies here give larger blocks,
or have the kernel send the file while they are asked for a block. The library's own code decides on headers, lengths
and the end of a body, and everything that waits or fails while a block is sent is its own.
"""

from __future__ import annotations

import _socket
import io
import os
import stat
import time
from typing import Any

from fastio import counters
from fastio.concurrency import current
from fastio.concurrency.pace import SHARE, Pace
from fastio.config import KIB
from fastio.counters import Cause, Reason, Tally
from fastio.io import file_sending, image_files, syscalls
from fastio.proxy import Proxy

#: Bytes of a block that is sent where there is no room in the socket's buffer. It is what urllib3 2 sends in a call: a
#: socket's time-out is for each block, so that a larger one would have less time for a byte.
BLOCK = 16 * KIB

#: Seconds in which what comes of a body is gathered to be sent in one block.
AT_ONCE = 0.02
#: The most that is asked for of such a body in one step, in bytes.
LARGEST = 256 * KIB

_SOCKET = ("socket", "socket")
_GREEN_SOCKET = ("eventlet.greenio.base", "GreenSocket")
#: Classes whose objects read from a file, and the attribute that has it: what tempfile.NamedTemporaryFile() returns,
#: and what swiftclient and openstacksdk upload.
_READERS = {
    ("tempfile", "_TemporaryFileWrapper"): "file",
    ("swiftclient.utils", "LengthWrapper"): "_readable",
    ("openstack.cloud._utils", "FileSegment"): "_file",
}
_TLS = {("ssl", "SSLSocket"), ("eventlet.green.ssl", "GreenSSLSocket")}


def is_file(body: Any) -> bool:
    """Whether ``body`` is what ``open()`` returns for a regular file in binary mode, and nothing of it was replaced."""
    try:
        raw = body.raw if type(body) in (io.BufferedReader, io.BufferedRandom) else body
        if type(raw) is not io.FileIO or any("read" in vars(each) for each in (raw, body)):
            return False
        return stat.S_ISREG(os.fstat(raw.fileno()).st_mode)
    except (OSError, ValueError):
        # It is closed: upstream reports that.
        return False


def is_only_read(file: Any) -> bool:
    """Whether nothing can be written to ``file``, for which :func:`is_file` is true.

    Written bytes may still be in its buffer, while its descriptor has the old ones.
    """
    return not getattr(file, "raw", file).writable()


def is_at_hand(body: Any) -> bool:
    """Whether all of ``body`` can be had at once: a large block of a pipe would hold back bytes that have arrived.

    That is known of memory and of regular files, and of a few objects that read from one of them.
    """
    while _name(body) in _READERS:
        body = getattr(body, _READERS[_name(body)], None)
    return type(body) in (io.BytesIO, Sent) or is_file(body)


class Enlarged:
    """Stands for a body, and gives larger blocks than it is asked for.

    They have upstream's size if the socket has a time-out, which is for each block, or if its class is not one that is
    known here.

    :param connection: its ``sock`` is the socket, once the first block is wanted
    :param size: of a block, in bytes
    :param counts: of the patch that it is for
    """

    def __init__(self, body: Any, connection: Any, size: int, counts: Tally) -> None:
        self._body = body
        self._connection = connection
        self._size = size
        self._counts = counts
        self._begun = False

    def read(self, size: int) -> Any:
        if not self._begun:
            self._begun = True
            why_not = self._why_not(self._connection.sock)
            if why_not is None:
                self._counts.took()
            else:
                self._size = 0
                self._counts.fell_back(why_not)
        if not self._size:
            return self._body.read(size)
        data = self._body.read(self._size)
        if type(data) is bytes:
            self._counts.moved(len(data))
        return data

    def _why_not(self, sock: Any) -> Cause | None:
        if _name(sock) not in (_SOCKET, _GREEN_SOCKET, *_TLS):
            return Reason.FOREIGN
        return None if sock.gettimeout() is None else Reason.TIMEOUT


class Gathered(Proxy):
    """Stands for a body that may come slowly, and gives as much as was asked for of the bytes that come at once.

    The body is read in upstream's pieces. The first one that takes longer than :data:`AT_ONCE` ends the block, and is
    sent with those before it: the longest pause between two blocks is that of the source, the same as upstream's.
    Pieces grow while they come in an eighth of that time, up to :data:`LARGEST`, and no more than one of them is waited
    for. With a time-out, which is for each block, a block is one of upstream's pieces.

    :param piece: bytes that upstream reads and sends in one step
    :param timed: whether the socket has a time-out
    """

    def __init__(self, body: Any, piece: int, timed: bool = False) -> None:
        super().__init__(body)
        self._upstreams = self._piece = piece
        self._timed = timed

    def read(self, size: int) -> Any:
        if self._timed:
            return self.__wrapped__.read(min(size, self._upstreams))
        began = now = time.monotonic()
        pieces: list[bytes] = []
        left = size
        while left > 0 and now - began < AT_ONCE:
            data = self.__wrapped__.read(min(left, self._piece))
            if type(data) is not bytes:
                # Text, or an odd end: never after bytes.
                return b"".join(pieces) or data
            before, now = now, time.monotonic()
            if not data:
                break
            pieces.append(data)
            left -= len(data)
            if now - before > AT_ONCE:
                self._piece = self._upstreams
            elif now - before < AT_ONCE / 8 and len(data) == self._piece:
                self._piece = min(2 * self._piece, max(LARGEST, self._upstreams))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class Sent:
    """Stands for a file, and has the kernel send what fits while it is asked for a block.

    The first block is read, and so is one if the socket's buffer is full. Upstream sends these, which takes as long as
    its time-out says, or lets other greenlets run. At the end of the file, upstream finds it by reading.

    :param file: for which :func:`is_file` and :func:`is_only_read` are true
    :param connection: its ``sock`` is the socket, once the first block was sent
    :param counts: of the patch that it is for
    """

    def __init__(self, file: Any, connection: Any, counts: Tally) -> None:
        self._file = file
        self._connection = connection
        self._counts = counts
        self._begin: int | None = None
        self._sock: Any = None
        self._ended = False

    def read(self, size: int) -> Any:
        if self._ended:
            return self._file.read(size)
        block = min(size, BLOCK)
        if self._begin is None:
            # Upstream reports problems of the file.
            data = self._file.read(block)
            self._begin = self._file.tell() - len(data)
            return data
        if self._sock is None:
            self._start(self._connection.sock)
        if not self._ended and self._connection.sock is self._sock:
            self._send(self._begin, block)
        return self._file.read(size if self._ended else block)

    def _start(self, sock: Any) -> None:
        why_not = _why_not_sent(sock)
        if why_not is not None:
            self._end(why_not)
            return
        self._counts.took()
        self._sock = sock
        self._mapping = file_sending.is_local(sock)
        self._green = current.is_green()
        self._pace = Pace(fixed=None if self._green else SHARE, counts=self._counts)
        self._memory = image_files.InMemory(self._file.fileno())

    def _end(self, reason: Cause) -> None:
        """Upstream sends the rest."""
        self._ended = True
        self._counts.fell_back(reason)

    def _send(self, begin: int, block: int) -> None:
        """Send what fits without waiting for upstream's code, up to the end of the file."""
        file = self._file
        while True:
            self._pace.yield_when_due()
            try:
                # Asked each time: others may have moved it, or have closed it.
                position = file.tell()
                fd = file.fileno()
            except ValueError:
                return
            if self._green:
                image_files.fetch(fd, self._memory, position, position + self._pace.left)
            try:
                sent = file_sending.send(self._sock.fileno(), fd, position, self._pace.left, self._mapping)
            except BlockingIOError:
                counters.io.waits += 1
                self._pace.renew()
                return
            except OSError as error:
                if not file_sending.is_of_connection(error, fd, position):
                    self._end(Reason.REFUSED)
                    return
                # Upstream has read the block that it could not send.
                after = begin + ((position - begin) // block + 1) * block
                file.seek(max(position, min(after, os.fstat(fd).st_size)))
                raise
            if not sent:
                return
            file.seek(position + sent)
            self._pace.moved(sent)
            counters.io.writes += 1
            counters.io.bytes_out += sent


def _why_not_sent(sock: Any) -> Cause | None:
    """Return why a file cannot go to ``sock`` unchanged; None if it can."""
    name = _name(sock)
    if name in _TLS:
        return Reason.TLS
    if name not in (_SOCKET, _GREEN_SOCKET):
        return Reason.FOREIGN
    timeout = sock.gettimeout()
    if timeout == 0:
        return Reason.NON_BLOCKING
    if name == _GREEN_SOCKET:
        return Reason.HUB if syscalls.is_blocking(sock.fileno()) else None
    if type(sock).sendall is not _socket.socket.sendall:
        return Reason.FOREIGN
    # With a time-out its descriptor does not block.
    return None if timeout is not None or current.may_block() else Reason.HUB


def _name(instance: Any) -> tuple[str, str]:
    """By which its class is known: eventlet has copies of modules. A subclass does more than a socket does."""
    return type(instance).__module__, type(instance).__qualname__
