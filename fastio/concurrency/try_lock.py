"""A lock without waiting: work that one caller is doing already, the others leave to it."""

from __future__ import annotations

import os
import weakref

from fastio.concurrency import native

# The system's number of a thread, which a fork keeps; eventlet's would be one of a greenlet.
_get_ident = native.module("_thread").get_ident

_locks: set[weakref.ref[TryLock]] = set()


class TryLock:
    """A lock that any thread or greenlet can try to take, and that any of them can give back.

    A finalizer, a signal handler or a fork may come at any time, also within these methods, and want the lock. It is
    therefore one element of a dictionary: ``setdefault()`` adds it for exactly one of its callers, and never waits.

    A forked child has only the thread that forked. There, a lock that another thread had taken is free.

    ``threading.Lock.acquire(blocking=False)`` does neither. Under eventlet's monkey patch it is a lock of greenlets,
    which two threads of the system can both get. The system's own stays taken in a forked child.
    """

    def __init__(self) -> None:
        #: the thread that has taken it
        self._taken: dict[None, tuple[int]] = {}
        _locks.add(weakref.ref(self, _locks.discard))

    @property
    def taken(self) -> bool:
        """Whether the lock is held."""
        return bool(self._taken)

    def try_acquire(self) -> bool:
        """Whether the caller has acquired it; False if it is held already, even by the caller."""
        mine = (_get_ident(),)
        return self._taken.setdefault(None, mine) is mine

    def release(self) -> None:
        """Release it; if it is not held, nothing happens."""
        self._taken.clear()

    def _forked(self) -> None:
        if (_get_ident(),) not in self._taken.values():
            self._taken.clear()


def _forked() -> None:
    for reference in tuple(_locks):
        if (lock := reference()) is not None:
            lock._forked()


os.register_at_fork(after_in_child=_forked)
