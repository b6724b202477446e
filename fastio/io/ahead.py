"""The content of an answer, of which later parts are asked for ahead where one connection is slower than its reader.

A service far away gives a connection some 50 to 100 MB/s, and answers a request some milliseconds later. Parts that are
read at the same moment come several times as fast. The first answer is read as upstream reads it, and stays open: if a
part fails for whatever reason, such as another version of the object, the content comes from there again, byte for
byte, with the errors that upstream has.
"""

import os
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from fastio.concurrency import handover
from fastio.concurrency.pace import Pace
from fastio.config import MIB
from fastio.counters import Reason, Tally

#: Bytes of a part, and of the largest pieces that its thread hands over.
PART, PIECE = 8 * MIB, MIB
#: Parts ahead of one reader, and of all readers of the process besides the one that each may have.
MOST, MOST_OF_ALL = 4, 8
#: Bytes after which the connection of the first answer is judged, time and again.
WATCHED = 2 * MIB
#: Bytes of an answer that is read by one connection in any case.
LEAST = WATCHED + 2 * PART
#: Bytes per second of a connection that is fast enough.
FAST = 200_000_000

#: Reads some bytes at most, or all that are left (None); none at the end.
Read = Callable[[int | None], bytes]

#: The parts under way in this process.
_under_way: set[object] = set()
os.register_at_fork(after_in_child=_under_way.clear)


class _Part:
    """The bytes from ``first`` to ``end``, which another thread receives."""

    def __init__(self, first: int, end: int) -> None:
        self.first, self.end = first, end
        self.ended = False
        #: pieces with their places, in order; None where there will be no more
        self.pieces = handover.Handover()

    def receive(self, ask: Callable[[int, int], tuple[Read, Callable[[], Any]]]) -> None:
        """Hand over what is answered to a request for the part."""
        left, pace = self.end - self.first, Pace()
        # Whatever goes wrong is for the first answer to tell.
        try:
            with suppress(Exception):
                read, close = ask(self.first, self.end)
                try:
                    while left and not self.ended:
                        pace.yield_when_due()
                        if not (data := read(min(PIECE, pace.left, left))):
                            break
                        pace.moved(len(data))
                        self.pieces.give((self.end - left, data))
                        left -= len(data)
                finally:
                    close()
        finally:
            _under_way.discard(self)
            if left:
                self.pieces.give(None)


class Ahead:
    """The content of an answer, in order.

    :param read: reads from the answer
    :param close: closes it
    :param total: its bytes
    :param ask: asks for the bytes from ``first`` to ``end`` of the very same content; returns functions as ``read`` and
        ``close`` are, and raises if it is not the same
    :param counts: of the patch that it is for: calls are parts
    """

    def __init__(
        self, read: Read, close: Callable[[], Any], total: int,
        ask: Callable[[int, int], tuple[Read, Callable[[], Any]]], counts: Tally,
    ) -> None:  # fmt: skip
        self._read, self._close, self._total, self._ask, self._counts = read, close, total, ask, counts
        #: bytes that were read of the first answer, and by the reader
        self._received = self._position = 0
        self._parts: deque[_Part] = deque()
        #: where the next part begins, and how many are wanted at the same moment; 0: the first answer is read
        self._next = self._wanted = 0
        #: a part has failed
        self._failed = False
        self._rest = b""
        self._watch()

    def read(self, size: int | None = None) -> bytes:
        """``size`` bytes, or all where there are less or ``size`` is None."""
        if self._wanted:
            begun = self._position
            try:
                data = self._read_parts(self._total - begun if size is None or size < 0 else size)
            except BaseException:
                # Such as a time-out: what it took has been given to nobody, and comes from the first answer.
                self._give_up(begun)
                raise
            if data is not None:
                return data
            self._give_up(begun)
        return self._read_first(size)

    def _read_parts(self, wanted: int) -> bytes | None:
        """The next bytes; None if a part fails."""
        found = []
        while wanted > 0 and self._position < self._total:
            data = self._rest or self._take()
            if not data:
                return None
            data, self._rest = data[:wanted], data[wanted:]
            found.append(data)
            self._position += len(data)
            wanted -= len(data)
        if found and self._position == self._total:
            self.close()
        return found[0] if len(found) == 1 else b"".join(found)

    def close(self) -> None:
        """Close the answer; parts that come yet are not read any further."""
        self._end_parts()
        self._close()

    def __del__(self) -> None:
        self._end_parts()

    def _end_parts(self) -> None:
        for part in self._parts:
            part.ended = True

    def _watch(self) -> None:
        self._watched, self._waited = 0, 0.0
        self._since, self._cpu = time.monotonic(), time.process_time()

    def _read_first(self, size: int | None) -> bytes:
        # It is behind what came in parts.
        while self._received < self._position:
            data = self._read(min(PIECE, self._position - self._received))
            if not data:
                return data
            self._received += len(data)
        begun = time.monotonic()
        data = self._read(size)
        now = time.monotonic()
        self._received += len(data)
        self._position += len(data)
        self._watched += len(data)
        self._waited += now - begun
        if self._watched >= WATCHED:
            elapsed = now - self._since
            # Where the processor is busy, more connections do not help.
            slow = self._watched < FAST * self._waited and 2 * self._waited > elapsed
            idle = 2 * (time.process_time() - self._cpu) < elapsed
            if slow and idle and not self._failed and self._total - self._position > 2 * PART:
                self._next, self._wanted = self._position, 2
                self._begin_parts()
            self._watch()
        return data

    def _begin_parts(self) -> None:
        while len(self._parts) < self._wanted and self._next < self._total:
            if self._parts and len(_under_way) >= MOST_OF_ALL:
                break
            part = _Part(self._next, min(self._next + PART, self._total))
            _under_way.add(part)
            try:
                handover.start(part.receive, self._ask)
            except RuntimeError:
                _under_way.discard(part)
                break
            self._counts.took()
            self._parts.append(part)
            self._next = part.end

    def _take(self) -> bytes | None:
        """The next piece; None if it fails, so that the first answer is to be read again."""
        if not self._parts:
            return None
        part = self._parts[0]
        begun = time.monotonic()
        place, data = part.pieces.take() or (-1, b"")
        self._waited += time.monotonic() - begun
        # A piece is missing if an exception, such as a signal handler's, came between its end and that of the read.
        if place != self._position:
            return None
        self._counts.moved(len(data))
        if place + len(data) == part.end:
            self._parts.popleft()
            # One more if the reader keeps up with those that there are.
            if 2 * self._waited > time.monotonic() - self._since:
                self._wanted = min(MOST, self._wanted + 1)
            self._watch()
            self._begin_parts()
        return bytes(data)

    def _give_up(self, position: int) -> None:
        """Read the first answer alone from here on, and from ``position``."""
        self._counts.fell_back(Reason.REFUSED)
        self._end_parts()
        self._parts.clear()
        self._position, self._rest = position, b""
        self._wanted, self._failed = 0, True
