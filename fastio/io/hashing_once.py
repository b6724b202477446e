"""Hash objects that hash what goes by several times only once, whoever asks for it and for how many copies.

An import writes the same data to one store after the other, and each store asks for digests of what was written to it.
Here the state of each digest is kept at every 4 MiB, by the tags of all data up to there, see
:mod:`fastio.io.libcrypto`. As long as the data that comes is that of an earlier pass, its tags find those states, and
nothing is hashed. From the first segment that differs on, be it that a file has changed in between, the digest goes on
from the state before it, with the data that came. A digest is always that of the data which ``update()`` was given.

A state may be promised: a thread that hashes has yet to get there. Two digests of a kind that are fed with the same
data, one behind the other or next to each other, so become one.
"""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from fastio.concurrency.threads import step
from fastio.counters import Tally
from fastio.io.hashing import BackgroundHash, Pool
from fastio.io.libcrypto import Authenticate, poly1305

#: Bytes from one state to the next: what is held back until it is known whether it has to be hashed.
SEGMENT = 4 * 1024 * 1024

#: States that are kept in all, of about 700 bytes each, and how many of them one hash object may add: 64 GiB of data.
STATES = 32768
MOST = STATES // 2

#: A segment of more pieces is not worth keeping them apart.
PIECES = 4096

#: The states, oldest first, by the algorithm and the tags of all data before; empty lists are promises. Everything that
#: is done to it is one step for the interpreter.
_states: OrderedDict[tuple[str, bytes], list[Any]] = OrderedDict()
# In a child, no thread keeps the promises of the parent's threads.
os.register_at_fork(after_in_child=_states.clear)

_pass: ContextVar[Pass | None] = ContextVar("fastio_pass", default=None)


class Pass:
    """Data that goes by once, for several digests.

    :param counts: of the patch that it is for: the bytes that were not hashed again
    """

    def __init__(self, authenticate: Authenticate, counts: Tally) -> None:
        self.counts = counts
        self._authenticate = authenticate
        self._last: tuple[list[bytes], bytes] = [], b""

    def tag(self, before: bytes, pieces: list[bytes]) -> bytes:
        """Return the tag of a segment and of the tag ``before`` it, for all digests; empty if there is none."""
        last, tag = self._last
        data = [before, *pieces]
        # Most are the very same objects, which costs nothing to see.
        if last != data:
            tag = self._authenticate(data)
        # In most cases no other digest needs the result, and the data may go.
        self._last = ([], b"") if last else (data, tag)
        return tag


@contextlib.contextmanager
def one_pass(counts: Tally) -> Iterator[None]:
    """Mark data that this thread or greenlet hashes in the block as hashed again later, or hashed before."""
    authenticate = poly1305()
    token = _pass.set(None if authenticate is None else Pass(authenticate, counts))
    try:
        yield
    finally:
        _pass.reset(token)


def in_background(hash: Any, pool: Pool, counts: Tally) -> BackgroundHash:
    """``hash`` whose work threads do; within :func:`one_pass` only the work that is not done yet."""
    current = _pass.get()
    return BackgroundHash(hash, pool, counts) if current is None else OnceHash(hash, pool, counts, current)


class OnceHash(BackgroundHash):
    """Stands for a new hash object of ``hashlib`` while data goes by that has gone by before, or will again.

    It follows as long as the states of its data are known: the hash object is then behind, and has seen nothing of it.
    """

    __slots__ = ("_current", "_follows", "_held", "_held_bytes", "_segments", "_state", "_tag")

    def __init__(self, hash: Any, pool: Pool, counts: Tally, current: Pass) -> None:
        super().__init__(hash, pool, counts)
        #: None once it is like any other
        self._current: Pass | None = current if self._is_native else None
        self._follows = True
        #: pieces of the segment that is not complete
        self._held: list[bytes] = []
        self._held_bytes = 0
        #: of the data before it
        self._tag = b""
        self._segments = 0
        self._state: list[Any] | None = None

    def update(self, data: Any, /) -> None:
        """Same as hashlib's."""
        if type(data) is not bytes or len(self._held) == PIECES:
            self._leave()
        start = 0
        while self._current is not None and start < len(data):
            # All of it at once, which is not copied, or what the segment has room for.
            end = start + SEGMENT - self._held_bytes
            self._take_in(data[start:end])
            start = end
            if self._held_bytes == SEGMENT:
                self._end_segment(self._current)
        if self._current is None:
            super().update(data[start:] if start else data)

    def _take_in(self, data: bytes) -> None:
        self._held.append(data)
        self._held_bytes += len(data)
        if not self._follows:
            super().update(data)

    def _end_segment(self, current: Pass) -> None:
        """Find the state after what is held, or make it."""
        self._tag = current.tag(self._tag, self._held)
        if not self._tag or self._segments == MOST:
            return self._leave()
        key = self._hash.name, self._tag
        state = _states.get(key)
        if state is None:
            self._catch_up()
            state = _states.setdefault(key, self._promise())
            if len(_states) > STATES:
                with contextlib.suppress(KeyError):
                    _states.popitem(last=False)
        else:
            self._follows = True
            current.counts.moved(SEGMENT)
        self._state = state
        self._held, self._held_bytes = [], 0
        self._segments += 1
        return None

    def _promise(self) -> list[Any]:
        """The state that there will be once everything up to now is hashed, in a list."""
        state: list[Any] = []
        worker = None if self._pool.is_forking() else self._thread()
        if worker is None:
            state.append(self._call(self._hash.copy))
            return state
        if self._pending:
            self._submit(worker)
        # It counts as data that has yet to be hashed, so that what comes behind goes to the same thread.
        worker.submit(
            map(state.append, step(self._hash.copy)), map(self._unfinished.remove, (0,)),
            noting=step(self._unfinished.append, 0),
        )  # fmt: skip
        return state

    def _catch_up(self) -> None:
        """Have the hash object be where the data is."""
        if self._follows:
            if self._state is not None:
                # Its unfinished work is of no use: others have done it.
                self._pending.clear()
                self._pending_bytes = 0
                if not self._state:
                    self._pool.finish(self._pool.new_event)
                if not self._state:
                    raise RuntimeError(f"{self._hash!r} could not hash all of its data in a native thread")
                self._hash = self._state[0].copy()
            self._follows = False
            for piece in self._held:
                super().update(piece)

    def _leave(self) -> None:
        """Be like any other from now on."""
        if self._current is not None:
            self._catch_up()
            self._current, self._held, self._state = None, [], None

    def digest(self, *args: Any, **kwargs: Any) -> Any:
        """Same as hashlib's."""
        self._catch_up()
        return super().digest(*args, **kwargs)

    def hexdigest(self, *args: Any, **kwargs: Any) -> Any:
        """Same as hashlib's."""
        self._catch_up()
        return super().hexdigest(*args, **kwargs)

    def copy(self) -> BackgroundHash:
        """Same as hashlib's."""
        self._catch_up()
        return super().copy()
