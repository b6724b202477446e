"""Hand data over from one thread to another; threads are greenlets where the program has monkey patched them."""

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from fastio.concurrency import current, native


class Handover:
    """Things in order, from who has them to who waits for them. Made where it is used: ``threading`` may be patched."""

    def __init__(self) -> None:
        self._things: deque[Any] = deque()
        self._there = threading.Semaphore(0)

    def give(self, thing: Any) -> None:
        self._things.append(thing)
        self._there.release()

    def take(self) -> Any:
        """The next thing, once it is there."""
        self._there.acquire()
        return self._things.popleft()


def is_possible() -> bool:
    """Whether this program's threads can be waited for: the hub itself would wait for the system's."""
    return current.hub() is None or current.threads_are_green()


def start(function: Callable[..., Any], *args: Any) -> None:
    """Run ``function(*args)`` beside this thread; the process may end meanwhile. A system's thread takes no signals.

    :raises RuntimeError: if the system has no more threads
    """
    thread = threading.Thread(target=function, args=args, daemon=True)
    # Of a greenlet, others would run meanwhile.
    with contextlib.nullcontext() if current.threads_are_green() else native.without_signals():
        thread.start()
