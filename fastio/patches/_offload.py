"""Calls that would hold the hub until they return, made in eventlet's pool of native threads (``eventlet.tpool``)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from fastio.patches import _fair

T = TypeVar("T")


def run(call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """The result of ``call(*args, **kwargs)``; other greenlets run meanwhile. Natively, and in the hub, a plain call.

    An exception that arrives while it runs (a time-out, a kill) comes through once the call has ended, as it would if
    the hub had been held: nobody closes or reuses what a native thread is still working on.
    """
    if _fair.hub() is None:
        return call(*args, **kwargs)
    from eventlet import tpool

    if tpool._threads and not tpool._threads[0].is_alive():
        # The pool is that of the process that forked us, and nobody would answer.
        return call(*args, **kwargs)
    lock = tpool.threading.Lock
    taken, ended = lock(), lock()
    ended.acquire()

    def work() -> Any:
        if not taken.acquire(False):
            return None
        try:
            return call(*args, **kwargs)
        finally:
            ended.release()

    try:
        return tpool.execute(work)
    except BaseException:
        if not taken.acquire(False):
            ended.acquire()
        raise


class Offloaded:
    """Stands for an object of a native library: its methods run in the pool, everything else is the original's.

    For objects that other calls of the library do not ask for: those want the original itself.
    """

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._wrapped, name)
        return functools.partial(run, value) if callable(value) else value

    def __enter__(self) -> Offloaded:
        self._wrapped.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> Any:
        leave = self._wrapped.__exit__
        if kind is None:
            return run(leave, None, None, None)
        # Perhaps the garbage collector ends a generator, and nothing may switch greenlets then.
        return leave(kind, error, traceback)
