"""Images as glance gives them to a store, and what becomes of one in a driver's hands."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from typing import Any

KIB, MIB = 1 << 10, 1 << 20


def content(size: int) -> bytes:
    """Return ``size`` bytes, the same ones each time."""
    return random.Random(size).randbytes(size)


def sizes(size: int, chunk: int) -> list[int]:
    """The chunks in which ``size`` bytes come."""
    return [chunk] * (size // chunk) + [size % chunk] * bool(size % chunk)


class ImageFile:
    """An image file that has nothing but ``read``, and notes what it was asked for.

    :param short: bytes of the longest read, whatever is asked for
    :param fails_at: raise ``error`` instead of reading beyond so many bytes
    :param before: called before each read, with the file
    """

    def __init__(
        self,
        data: bytes,
        short: int | None = None,
        fails_at: int | None = None,
        error: BaseException | None = None,
        before: Callable[[ImageFile], Any] = lambda file: None,
    ) -> None:
        self._file = io.BytesIO(data)
        self._short = short
        self._fails_at = fails_at
        self._error = error or OSError("the image cannot be read")
        self._before = before
        #: sizes of the reads
        self.asked: list[int] = []

    @property
    def position(self) -> int:
        """Bytes that were read."""
        return self._file.tell()

    def read(self, size: int = -1) -> bytes:
        self._before(self)
        self.asked.append(size)
        if self._fails_at is not None and (size < 0 or self.position + size > self._fails_at):
            raise self._error
        return self._file.read(size if self._short is None else min(size, self._short))


class Verifier:
    """Stands for cursive's verifier of a signature: collects what it is given."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def update(self, data: bytes) -> None:
        self.pieces.append(bytes(data))

    @property
    def seen(self) -> bytes:
        return b"".join(self.pieces)


class TimeIsOver(Exception):
    """A time-out."""


class Ticker:
    """A greenlet that counts the turns of the hub while it is there, and looks how far something is in each of them.

    :param look: returns how far it is
    """

    def __init__(self, look: Callable[[], int] = lambda: 0) -> None:
        import eventlet

        self._eventlet = eventlet
        self._look = look
        self._far = self.ticks = 0
        #: how far it came between two turns, at most
        self.most = 0

    def _run(self) -> None:
        while True:
            self.ticks += 1
            self._step()
            self._eventlet.sleep(0)

    def _step(self) -> None:
        before, self._far = self._far, self._look()
        self.most = max(self.most, self._far - before)

    def __enter__(self) -> Ticker:
        self._far = self._look()
        self._greenlet = self._eventlet.spawn(self._run)
        self._eventlet.sleep(0)
        self.ticks = 0
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._greenlet.kill()
        self._step()


class OddFile:
    """An image file whose reads give these values one after the other, whatever size is asked for."""

    def __init__(self, *values: Any) -> None:
        self.left = list(values)

    def read(self, size: int) -> Any:
        return self.left.pop(0) if self.left else b""
