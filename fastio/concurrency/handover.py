"""Hand data over from one thread to another; threads are greenlets where the program has monkey patched them."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any


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


def start(function: Callable[..., Any], *args: Any) -> None:
    """Run ``function(*args)`` beside this thread; the process may end meanwhile.

    :raises RuntimeError: if the system has no more threads
    """
    threading.Thread(target=function, args=args, daemon=True).start()
