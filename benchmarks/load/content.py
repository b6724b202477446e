"""The content of objects: each reader can compute it, so it is stored nowhere else, at any size.

All objects of a plan are cut from one block of about a MiB that repeats itself; each begins at another place of it.
To compare what was read with it costs far less than to hash it, so every byte of every operation is checked.
"""

import random
from collections.abc import Iterator

from benchmarks.load.plan import Plan
from benchmarks.load.schedule import UNKNOWN_SIZE
from benchmarks.load.selectors import mixed

#: Bytes of a block of random bytes: a prime, so that no two places of an object that are powers of 2 apart look alike.
BLOCK = 1_048_573
#: Bytes of a piece that is written at once.
PIECE = 256 << 10
#: How a problem begins if what arrived is not what was written.
WRONG = "wrong data"


class Content:
    """The content of the objects of a plan."""

    def __init__(self, plan: Plan) -> None:
        self._seed = plan.seed
        self._block = random.Random(plan.seed).randbytes(BLOCK)
        #: twice, so that what begins in it is in one part
        self._twice = self._block * 2

    def _start(self, number: int) -> int:
        """Where in the block an object begins."""
        return mixed(self._seed + 2, number) % BLOCK

    def at(self, number: int, offset: int, length: int, size: int) -> bytes:
        """``length`` bytes of an object from ``offset`` on, fewer at its end.

        :param size: of the object
        """
        length = max(0, min(length, size - offset) if size != UNKNOWN_SIZE else length)
        start = (self._start(number) + offset) % BLOCK
        if start + length <= len(self._twice):
            return self._twice[start : start + length]
        parts = [self._twice[start:]]
        left = length - len(parts[0])
        parts += [self._block] * (left // BLOCK)
        parts.append(self._block[: left % BLOCK])
        return b"".join(parts)

    def matches(self, number: int, offset: int, data: bytes | bytearray | memoryview, size: int) -> bool:
        """Whether ``data`` is what an object of ``size`` bytes holds from ``offset`` on; mostly without a copy."""
        start = (self._start(number) + offset) % BLOCK
        if start + len(data) <= len(self._twice) and (offset + len(data) <= size or size == UNKNOWN_SIZE):
            return self._twice.startswith(data, start)
        return bytes(data) == self.at(number, offset, len(data), size)

    def pieces(self, number: int, size: int) -> Iterator[bytes]:
        """All of an object."""
        for offset in range(0, size, PIECE):
            yield self.at(number, offset, PIECE, size)


class Check:
    """Compares what is read of an object with what it should be, piece by piece.

    :param size: of the object; :data:`~benchmarks.load.schedule.UNKNOWN_SIZE`: any
    """

    def __init__(self, content: Content, number: int, size: int, every_byte: bool = True) -> None:
        self._content = content
        self._size = size
        self._number = number
        self._every_byte = every_byte
        #: bytes so far
        self.seen = 0
        self._wrong: int | None = None

    def add(self, data: bytes | bytearray | memoryview) -> None:
        if self._every_byte and self._wrong is None:
            self._wrong = None if self._content.matches(self._number, self.seen, data, self._size) else self.seen
        self.seen += len(data)

    def problem(self) -> str:
        """Return what was wrong, when all has been added; empty if nothing was."""
        if self.seen != self._size != UNKNOWN_SIZE:
            return f"{WRONG}: {self.seen} bytes instead of {self._size}"
        return "" if self._wrong is None else f"{WRONG} in the piece from byte {self._wrong} on"
