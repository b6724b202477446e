"""Hash objects whose work native threads do, in parallel with reading and writing the data.

hashlib releases the GIL for large data, so md5, sha512 and the transfer can each have a processor. One thread
processes the data of one hash object in order; see :mod:`fastio.concurrency.threads`. No thread is started if there is
little data, or if none of it is large.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable
from itertools import chain, repeat, starmap
from types import BuiltinMethodType
from typing import Any

from fastio import counters
from fastio.concurrency.events import NativeEvent, new_event
from fastio.concurrency.threads import Event, Worker, Workers, at_once, step
from fastio.counters import Cause, Reason, Tally
from fastio.io import scratch

#: Below it hashlib keeps the GIL (``HASHLIB_GIL_MINSIZE`` in CPython), so that a thread could do nothing in parallel.
SMALL = 2048

#: Bytes that are worth waking a thread for: about half a millisecond of sha512, where handing over costs about 15
#: microseconds. Less than this is hashed when the digest is asked for, by who asks.
BATCH = 256 * 1024

#: Pieces shorter than this are joined first: another trip through the GIL costs more than copying them.
JOINED = 32 * 1024

#: Bytes that one hash object lets pile up before ``update()`` waits, or one piece of data if that is larger. Enough to
#: keep a thread busy while a chunk is read and written, and little enough to be in the processor's cache still.
LIMIT = 4 * 1024 * 1024

#: Bytes that all of them together let pile up, about: the more there is already, the less each may add, but always
#: ``BATCH``.
TOTAL = 64 * 1024 * 1024


class Pool:
    """The threads that hash: as many as there are processors for this process, each started when there is work."""

    def __init__(self) -> None:
        #: how the calling thread or greenlet waits
        self.new_event: Callable[[], Event] = new_event
        self.workers = Workers(max(2, len(os.sched_getaffinity(0))))
        #: jobs that threads were given so far; close, not exact, since it is counted without a lock
        self.batches = 0
        self._forks: list[None] = []
        self._at_fork_registered = False

    def worker(self) -> Worker | None:
        """A thread for a hash object that has none at present; None if there can be none."""
        if not self._at_fork_registered:
            self._at_fork_registered = True
            os.register_at_fork(
                before=self._before_fork, after_in_parent=self._forks.pop, after_in_child=self._forks.clear
            )
            scratch.keep_freed(2 * LIMIT)
        return self.workers.idlest()

    def is_forking(self) -> bool:
        """Whether the process is about to be forked, and nothing may be left to threads."""
        return bool(self._forks)

    def load(self) -> int:
        """Jobs that are not finished."""
        return sum(map(Worker.load, self.workers))

    def limit(self) -> int:
        """Bytes that one hash object may let pile up now."""
        return max(BATCH, min(LIMIT, TOTAL // max(1, self.load())))

    def finish(self, new_event: Callable[[], Event]) -> None:
        """Wait for everything that was handed over so far."""
        for worker in self.workers:
            if worker.load():
                worker.finish(new_event)

    def _before_fork(self) -> None:
        # The child has the hash objects, but none of the threads that are in the middle of them.
        self._forks.append(None)
        self.finish(NativeEvent)


#: The threads that hash for all patches of this process.
pool = Pool()


class BackgroundHash:
    """Stands for a hash object of ``hashlib``: the same results, exceptions and attributes.

    ``update()`` leaves large bytes objects to a thread of ``pool`` and returns at once, or when no more than the
    allowed amount is left to hash. Data that could change after the call (bytearray, memoryview) or is too small to be
    worth it is hashed before it returns. Any use of the state of the hash waits for the thread first.

    A hash object that is not written in C does all of its work in the thread that calls it.

    :param counts: of the patch that it is for: the bytes that threads hash, and the calls that hash by themselves
    """

    __slots__ = ("_counts", "_hash", "_is_native", "_pending", "_pending_bytes", "_pool", "_unfinished", "_worker")

    def __init__(self, hash: Any, pool: Pool, counts: Tally = counters.UNCOUNTED) -> None:
        self._counts = counts
        self._hash = hash
        self._is_native = type(getattr(hash, "update", None)) is BuiltinMethodType
        self._pool = pool
        #: pieces that no thread has been given yet
        self._pending: deque[bytes] = deque()
        self._pending_bytes = 0
        #: sizes of the jobs that the worker has yet to finish, and then removes
        self._unfinished: deque[int] = deque()
        self._worker: Worker | None = None

    def update(self, data: Any, /) -> None:
        """Same as hashlib's."""
        size = len(data) if type(data) is bytes else 0
        if size < SMALL or not self._is_native or self._pool.is_forking():
            self._counts.fell_back(self._why_not(data))
            return self._call(self._hash.update, data)
        self._pending.append(data)
        self._pending_bytes += size
        if self._pending_bytes >= BATCH:
            self._hand_over()
        return None

    def _why_not(self, data: Any) -> Cause:
        if not self._is_native:
            return Reason.FOREIGN
        if type(data) is not bytes:
            return Reason.INPUT
        return Reason.SMALL if len(data) < SMALL else Reason.FORKING

    def _hand_over(self) -> None:
        """Give what is pending to a thread, and wait if it has too much to do."""
        worker = self._thread()
        if worker is None:
            return self._call(lambda: None)
        outstanding, limit = sum(self._unfinished), self._pool.limit()
        if not outstanding or outstanding + self._pending_bytes <= limit // 2:
            self._submit(worker)
        elif outstanding + self._pending_bytes >= limit:
            # Pending data comes behind the mark, so that the thread has half of it to do when this one goes on.
            with worker.mark(self._pool.new_event()) as mark:
                self._submit(worker)
                mark.wait()
        return None

    def _thread(self) -> Worker | None:
        """Return the worker of this object: the same one while it has something to do, to keep the order."""
        if not self._unfinished:
            self._worker = self._pool.worker()
        elif self._worker not in tuple(self._pool.workers):
            # It is the parent's: the process was forked without Python's knowledge.
            return None
        return self._worker

    def _submit(self, worker: Worker) -> None:
        """Hand over what is pending; whatever interrupts it, each piece is either handed over or still pending."""
        count, size = len(self._pending), sum(map(len, self._pending))
        pieces: list[bytes] = []
        data = map(b"".join, (pieces,)) if count > 1 and size < JOINED * count else pieces
        # Nothing that is in the job refers to this object: the last to let go of it must not be the thread.
        worker.submit(
            map(self._hash.update, data),
            map(self._unfinished.remove, (size,)),
            noting=chain(
                step(pieces.extend, self._pending), step(self._pending.clear), step(self._unfinished.append, size)
            ),
        )
        self._pending_bytes = 0
        self._pool.batches += 1
        self._counts.moved(size)

    def _hash_pending(self) -> None:
        """Hash what is pending in this thread; each piece once, also where several threads call."""
        with contextlib.suppress(IndexError):
            while self._pending:
                at_once(map(self._hash.update, starmap(self._pending.popleft, repeat((), len(self._pending)))))
        self._pending_bytes = 0

    def digest(self, *args: Any, **kwargs: Any) -> Any:
        """Same as hashlib's."""
        return self._call(self._hash.digest, *args, **kwargs)

    def hexdigest(self, *args: Any, **kwargs: Any) -> Any:
        """Same as hashlib's."""
        return self._call(self._hash.hexdigest, *args, **kwargs)

    def copy(self) -> BackgroundHash:
        """Same as hashlib's."""
        return BackgroundHash(self._call(self._hash.copy), self._pool, self._counts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hash, name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._hash)

    def __repr__(self) -> str:
        return repr(self._hash)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._hash.__reduce_ex__(protocol)

    def _call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return ``function()`` once everything up to now is hashed."""
        if self._pending_bytes >= BATCH and not self._pool.is_forking() and (worker := self._thread()) is not None:
            self._submit(worker)
        while self._unfinished:
            workers = tuple(self._pool.workers)
            failed = self._worker not in workers or any(worker.failed for worker in workers)
            self._pool.finish(self._pool.new_event)
            if failed and self._unfinished:
                raise RuntimeError(f"{self._hash!r} could not hash all of its data in a native thread")
        self._hash_pending()
        return function(*args, **kwargs)
