"""Native threads: a gate at which workers stand until a test opens it, and waiting for what they do."""

from collections.abc import Callable
from typing import Any

from fastio.concurrency import native
from fastio.concurrency.threads import Workers, step


class Gate:
    """In the way of all of ``workers``, each of which is started; whatever they are given comes behind it."""

    def __init__(self, workers: Workers) -> None:
        # Of the operating system, and written in C, as all that a worker calls.
        allocate_lock = native.module("_thread").allocate_lock
        while (started := len(workers)) < workers.most:
            assert workers._one_more() is not None and len(workers) == started + 1
        self._locks: list[Any] = []
        for worker in workers:
            lock = allocate_lock()
            lock.acquire()
            self._locks.append(lock)
            worker.submit(step(lock.acquire))

    def open(self) -> None:
        """Let them go on; a second call does nothing."""
        while self._locks:
            self._locks.pop().release()


def until(condition: Callable[[], Any]) -> None:
    """Let other threads run until ``condition`` holds; what never comes is ended by the test's time limit."""
    pause = native.module("threading").Event()
    while not condition():
        # Not time.sleep(): under eventlet it would make a hub for each native thread that calls it.
        pause.wait(0.001)
