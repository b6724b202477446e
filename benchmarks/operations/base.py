"""Shared by all operations: their calls, who makes them, and their payloads."""

import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

from benchmarks.harness.modes import Mode, check_fast
from benchmarks.harness.worker import Payload, random_payload, text_payload

#: Bytes of images that are left before they are deleted: deletion takes time, too.
LEFT = 256 << 20

#: Arguments of an operation beside the mode: the parameters of the case, and how to reach its server.
Context: TypeAlias = Mapping[str, Any]


class Work:
    """Calls of an operation; each is about so many bytes, which are known."""

    #: whether threads make the calls, whatever the mode: what is measured is a server
    threads = False
    #: which of two sides the calls are of, where one process is both
    side = ""

    def before(self, size: int, calls: int) -> None:
        """Prepare so many calls, unmeasured."""

    def once(self, size: int) -> int:
        """One call; returns how much it has moved, as :meth:`length` has it."""
        raise NotImplementedError

    def length(self, size: int) -> int:
        """Return the result of one call of so many bytes."""
        return size

    def payload(self, size: int) -> Payload:
        """Return a payload of so many bytes."""
        return random_payload(size)

    def sha256(self, size: int) -> str:
        """The hash of what one more call moves."""
        raise NotImplementedError

    def after(self) -> None:
        """Remove what calls have left."""

    def check(self, mode: Mode, size: int) -> None:
        """Raises RuntimeError unless fastio, if it is to, has moved at least so many bytes."""


Operation: TypeAlias = Callable[[Mode, Context], AbstractContextManager[Work]]


class Counted(Work):
    """A call whose bytes fastio's own code counts, unless the operation says that it does not."""

    counts = True

    def check(self, mode: Mode, size: int) -> None:
        if self.counts:
            check_fast(mode, size)


class Reading(Counted):
    """A call that gets data.

    :param read: gives the pieces of so many bytes to a function
    :param text: they are characters
    """

    def __init__(self, read: Callable[[int, Callable[[Any], object]], object], text: bool = False) -> None:
        self._read = read
        self._text = text

    def payload(self, size: int) -> Payload:
        return (text_payload if self._text else random_payload)(size)

    def length(self, size: int) -> int:
        return len(self.payload(size).path.read_text("utf-8")) if self._text else size

    def once(self, size: int) -> int:
        counts: list[int] = []
        self._read(size, lambda piece: counts.append(len(piece)))
        return sum(counts)

    def sha256(self, size: int) -> str:
        hasher = hashlib.sha256()
        self._read(size, lambda piece: hasher.update(piece.encode() if isinstance(piece, str) else piece))
        return hasher.hexdigest()


class Writing(Counted):
    """A call that sends a payload; it returns what the other side says of it: the bytes, or their hash.

    :param prepare: has what is sent in memory before the calls are measured
    """

    def __init__(
        self, write: Callable[[Payload, bool], str], prepare: Callable[[Payload], object] | None = None
    ) -> None:  # fmt: skip
        self._write = write
        self._prepare = prepare

    def before(self, size: int, calls: int) -> None:
        if self._prepare:
            self._prepare(random_payload(size))

    def once(self, size: int) -> int:
        return int(self._write(random_payload(size), False))

    def sha256(self, size: int) -> str:
        return self._write(random_payload(size), True)


class Keeping(Work):
    """A call that leaves an image, which is deleted with others once they are many bytes."""

    def __init__(self, delete: Callable[[str], object]) -> None:
        self._delete = delete
        self._kept: list[str] = []
        self._left = 0

    def keep(self, image: str, size: int) -> None:
        self._kept.append(image)
        self._left += size

    def after(self) -> None:
        if self._left >= LEFT:
            self.clear()

    def clear(self) -> None:
        while self._kept:
            self._delete(self._kept.pop())
        self._left = 0


@functools.cache
def content(payload: Payload) -> bytes:
    """The payload in memory, read once."""
    return payload.path.read_bytes()


class Crowd:
    """Those who call: this thread alone, or so many at once, which are greenlets or threads."""

    def __init__(self, green: bool) -> None:
        self._green = green
        self._pools: dict[int, Any] = {}

    def each(self, call: Callable[[], Any], at_once: int) -> list[Any]:
        """Return the call's result for each of them."""
        if at_once == 1:
            return [call()]
        if at_once not in self._pools:
            self._pools[at_once] = self._pool(at_once)
        return list(self._pools[at_once](call, at_once))

    def _pool(self, at_once: int) -> Callable[[Callable[[], Any], int], Iterable[Any]]:
        if self._green:
            import eventlet

            pool = eventlet.GreenPool(at_once)
            return lambda call, count: [each.wait() for each in [pool.spawn(call) for _ in range(count)]]
        from concurrent.futures import ThreadPoolExecutor

        executor = ThreadPoolExecutor(at_once)
        return lambda call, count: [each.result() for each in [executor.submit(call) for _ in range(count)]]
