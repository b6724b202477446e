"""The lock without waiting: one caller gets it, and in a forked child it is held if the child's thread holds it."""

import gc
import signal
from collections.abc import Callable
from types import FrameType

import pytest

from fastio.concurrency import native, try_lock
from fastio.concurrency.try_lock import TryLock
from tests.conftest import needs_eventlet
from tests.forked import in_a_fork, told_by_a_fork

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork", "ignore:Using fork")


class Thread:
    """A thread of the system's, which does one thing and then stays."""

    def __init__(self, work: Callable[[], object]) -> None:
        system = native.module("_thread")
        self._done, self._stays, self._gone = (system.allocate_lock() for _ in range(3))
        for lock in (self._done, self._stays, self._gone):
            lock.acquire()
        system.start_new_thread(self._run, (work,))
        self._done.acquire()

    def _run(self, work: Callable[[], object]) -> None:
        work()
        self._done.release()
        self._stays.acquire()
        self._gone.release()

    def end(self) -> None:
        self._stays.release()
        self._gone.acquire()


def test_it_is_taken_once_and_given_back() -> None:
    """Also if it is given back twice."""
    lock = TryLock()
    assert not lock.taken
    for _ in range(2):
        assert lock.try_acquire() and lock.taken
        assert not lock.try_acquire()
        lock.release()
        lock.release()
    assert not lock.taken


def test_another_thread_gives_it_back() -> None:
    lock = TryLock()
    thread = Thread(lock.try_acquire)
    assert lock.taken and not lock.try_acquire()
    lock.release()
    assert lock.try_acquire()
    thread.end()


def test_a_signal_handler_and_a_finalizer_get_an_answer_at_once() -> None:
    lock = TryLock()
    told: list[bool] = []

    def handler(number: int, frame: FrameType | None) -> None:
        told.append(lock.try_acquire())

    class Ring:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            told.append(lock.try_acquire())

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        assert lock.try_acquire()
        signal.raise_signal(signal.SIGUSR1)
        Ring()
        gc.collect()
        lock.release()
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert told == [False, False, True]


def test_a_forked_child_has_what_only_its_parent_s_threads_had() -> None:
    lock, own = TryLock(), TryLock()
    thread = Thread(lock.try_acquire)
    assert own.try_acquire()

    def child() -> list[bool]:
        found = [lock.taken, lock.try_acquire(), lock.try_acquire(), own.taken, own.try_acquire()]
        own.release()
        # A grandchild has what its parent's only thread had.
        return [*found, own.try_acquire(), in_a_fork(lambda: int(own.try_acquire())) == 0]

    assert told_by_a_fork(child) == [False, True, False, True, False, True, True]
    assert lock.taken and not lock.try_acquire()
    thread.end()


@needs_eventlet
def test_a_greenlet_s_is_its_thread_s() -> None:
    """A child has all greenlets of the thread that forked, and so the one that will give it back."""
    import eventlet

    lock = TryLock()
    found: list[bool] = []
    assert eventlet.spawn(lock.try_acquire).wait()
    eventlet.spawn(lambda: found.append(told_by_a_fork(lock.try_acquire))).wait()
    assert found == [False]


def test_one_that_is_thrown_away_leaves_nothing() -> None:
    before = set(try_lock._locks)
    locks = [TryLock() for _ in range(100)]
    new = try_lock._locks - before
    assert len(new) == 100
    locks.clear()
    assert not new & try_lock._locks
