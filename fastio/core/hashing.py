"""Hash objects whose work native threads do, next to whoever reads and writes the data.

hashlib releases the GIL for large data, so that md5, sha512 and the transfer itself can each have a processor. Every
hash object has a queue of its own, worked off in order by at most one thread at a time. Where little data comes, or
none of it is large, no thread is ever started.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol

#: Below it hashlib keeps the GIL (``HASHLIB_GIL_MINSIZE`` in CPython), so that a thread could do nothing in parallel.
SMALL = 2048

#: Bytes that are worth waking a thread for, and that it hashes before it looks whether others wait: about half a
#: millisecond of sha512, where handing over costs about 15 microseconds. Less than this is hashed when the digest is
#: asked for, by who asks.
BATCH = 256 * 1024

#: Pieces shorter than this are joined first: another trip through the GIL costs more than copying them.
JOINED = 32 * 1024

#: Bytes that one hash object lets pile up before ``update()`` waits, or one piece of data if that is larger. Enough to
#: keep a thread busy while a chunk is read and written, and little enough to be in the processor's cache still.
LIMIT = 4 * 1024 * 1024

#: Bytes that all of them together let pile up: with many at work each has an equal share, but at least ``BATCH``.
TOTAL = 64 * 1024 * 1024


class Bell(Protocol):
    """One wait of a thread or greenlet for another thread."""

    def wait(self) -> None:
        """Return once it was rung, be it before the call."""
        ...

    def ring(self) -> None:
        """Called at most once, from any native thread, and never after ``close``."""
        ...

    def close(self) -> None:
        """Called once, whether the wait came to its end or not."""
        ...


class NativeBell:
    """Blocks the thread that waits."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        lock.acquire()

    def wait(self) -> None:
        self._lock.acquire()

    def ring(self) -> None:
        self._lock.release()

    def close(self) -> None:
        pass


class Pool:
    """Native threads that hash: as many as there are processors for this process, each started when there is work.

    :param native: gives the ``threading`` module whose locks and threads are the system's; called often, because
        another library may replace those of ``threading`` itself at any time
    :param new_bell: how the calling thread or greenlet waits
    """

    def __init__(self, native: Callable[[], Any], new_bell: Callable[[], Bell] | None = None) -> None:
        # Imported here because it is not needed before there is something to hash. It is C, and always native.
        from _queue import SimpleQueue

        self.native = native
        self.new_bell = new_bell or self._native_bell
        self.most_threads = max(2, len(os.sched_getaffinity(0)))
        self._new_queue = SimpleQueue
        self._at_fork_registered = False
        self._reset()

    def _reset(self) -> None:
        self._queue: Any = self._new_queue()
        #: what is in the queue or in the hands of a thread
        self._jobs: set[BackgroundHash] = set()
        self._lock = self.native().Lock()
        self._forks = 0
        #: threads that were started
        self.threads = 0
        #: batches that threads took so far; close, not exact, since they count without a lock
        self.batches = 0

    def _native_bell(self) -> Bell:
        return NativeBell(self.native().Lock())

    def is_forking(self) -> bool:
        """Whether the process is about to be forked, and nothing may be left to threads."""
        return self._forks > 0

    def limit(self) -> int:
        """Bytes that one hash object may let pile up now."""
        return max(BATCH, min(LIMIT, TOTAL // (len(self._jobs) or 1)))

    def submit(self, job: BackgroundHash) -> bool:
        """Have a thread work on ``job``, whose lock the caller holds; False if there is no thread and can be none."""
        if len(self._jobs) >= self.threads < self.most_threads:
            self._start_thread()
        if not self.threads:
            return False
        self._queue.put(job)
        self._jobs.add(job)
        return True

    def done(self, job: BackgroundHash) -> None:
        """No thread has anything to do for ``job``, whose lock the caller holds."""
        self._jobs.discard(job)

    def _start_thread(self) -> None:
        if not self._at_fork_registered:
            os.register_at_fork(before=self._before_fork, after_in_parent=self._after_fork, after_in_child=self._reset)
            self._at_fork_registered = True
        with self._lock:
            if self.threads < self.most_threads:
                try:
                    self.native().Thread(target=self._work, name="fastio-hashing", daemon=True).start()
                except RuntimeError:
                    # The system's limit is reached, or the interpreter ends.
                    return
                self.threads += 1

    def _work(self) -> None:
        queue = self._queue
        while True:
            job = queue.get()
            again = True
            while again:
                self.batches += 1
                again = job.work()
                if again and not queue.empty():
                    # In turns, or a fast upload would keep the slow ones waiting.
                    queue.put(job)
                    break
            # Nothing of the upload stays in memory while the thread waits for the next.
            del job

    def _before_fork(self) -> None:
        # The child has the hash objects, but none of the threads that are in the middle of them.
        with self._lock:
            self._forks += 1
        while self._jobs:
            for job in tuple(self._jobs):
                job.wait(-1, self._native_bell)

    def _after_fork(self) -> None:
        with self._lock:
            self._forks -= 1


class BackgroundHash:
    """Stands for a hash object of ``hashlib``: the same results, exceptions and attributes.

    ``update()`` leaves large bytes objects to a thread of ``pool`` and returns at once, or when no more than the
    allowed amount is left to hash. What could change after the call (bytearray, memoryview) and what is too small to be
    worth it is hashed before it returns. Whatever needs the state of the hash waits for the thread first.
    """

    __slots__ = ("_bells", "_failure", "_hash", "_in_hand", "_lock", "_outstanding", "_pending", "_pool", "_submitted")

    def __init__(self, hash: Any, pool: Pool) -> None:
        self._hash = hash
        self._pool = pool
        self._lock = pool.native().Lock()
        #: pieces that nobody works on yet
        self._pending: list[bytes] = []
        #: bytes of the pending pieces and of those that a thread works on
        self._outstanding = 0
        #: a thread works on the hash, and nobody else may
        self._in_hand = False
        #: the pool will come to it
        self._submitted = False
        #: who waits, and until how many bytes are outstanding
        self._bells: list[tuple[int, Bell]] = []
        self._failure: BaseException | None = None

    def update(self, data: Any, /) -> None:
        """As that of hashlib."""
        size = len(data) if type(data) is bytes else 0
        pool = self._pool
        if size < SMALL or pool.is_forking():
            return self._call(self._hash.update, data)
        limit = pool.limit()
        if self._outstanding + size > limit:
            # Until half of it is done, so that not every piece takes a wait.
            self.wait(max(0, min(limit - size, limit // 2)), pool.new_bell)
        with self._lock:
            if self._failure is not None:
                raise self._failure
            self._pending.append(data)
            self._outstanding += size
            if self._outstanding < BATCH or self._in_hand or self._submitted:
                return None
            if pool.submit(self):
                self._submitted = True
                return None
        return self._call(lambda: None)

    def digest(self, *args: Any, **kwargs: Any) -> Any:
        """As that of hashlib."""
        return self._call(self._hash.digest, *args, **kwargs)

    def hexdigest(self, *args: Any, **kwargs: Any) -> Any:
        """As that of hashlib."""
        return self._call(self._hash.hexdigest, *args, **kwargs)

    def copy(self) -> BackgroundHash:
        """As that of hashlib."""
        return BackgroundHash(self._call(self._hash.copy), self._pool)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hash, name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._hash)

    def __repr__(self) -> str:
        return repr(self._hash)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._hash.__reduce_ex__(protocol)

    def work(self) -> bool:
        """Hash a batch, in a thread of the pool; True if it is to go on, sooner or later."""
        with self._lock:
            self._submitted = False
            if self._in_hand:
                # It was submitted twice, which an exception from a signal's handler can bring about.
                return False
            self._in_hand = True
            pieces, size = self._take()
        self._feed(pieces)
        # They are let go before anybody is told that they are.
        del pieces
        with self._lock:
            self._in_hand = False
            self._outstanding -= size
            self._submitted = self._outstanding >= BATCH
            if not self._submitted:
                self._pool.done(self)
            self._ring()
            return self._submitted

    def _take(self) -> tuple[list[bytes], int]:
        """The next pieces, about a batch of them, and their size."""
        count = size = 0
        while count < len(self._pending) and size < BATCH:
            size += len(self._pending[count])
            count += 1
        pieces = self._pending[:count]
        del self._pending[:count]
        return pieces, size

    def _feed(self, pieces: Sequence[bytes]) -> None:
        try:
            if len(pieces) > 1 and sum(map(len, pieces)) < JOINED * len(pieces):
                pieces = [b"".join(pieces)]
            for piece in pieces:
                self._hash.update(piece)
        except BaseException as error:
            # It is raised to who calls next.
            self._failure = error

    def _call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What ``function`` returns once everything up to now is hashed; nothing is hashed meanwhile."""
        while True:
            self.wait(-1, self._pool.new_bell)
            with self._lock:
                if self._in_hand or self._submitted:
                    continue
                if self._pending:
                    pieces, self._pending, self._outstanding = self._pending, [], 0
                    self._feed(pieces)
                if self._failure is not None:
                    raise self._failure
                return function(*args, **kwargs)

    def _is_free(self, room: int) -> bool:
        return self._outstanding <= room or not self._in_hand and not self._submitted

    def wait(self, room: int, new_bell: Callable[[], Bell]) -> None:
        """Wait until no more than ``room`` bytes are outstanding, or no thread works on the hash, or is to."""
        while not self._is_free(room):
            bell = new_bell()
            try:
                with self._lock:
                    if self._is_free(room):
                        return
                    self._bells.append((room, bell))
                bell.wait()
            finally:
                with self._lock:
                    self._bells = [entry for entry in self._bells if entry[1] is not bell]
                bell.close()

    def _ring(self) -> None:
        if self._bells:
            bells, self._bells = self._bells, []
            for room, bell in bells:
                if self._is_free(room):
                    bell.ring()
                else:
                    self._bells.append((room, bell))
