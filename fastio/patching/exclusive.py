"""Work that one thread alone does, and that threads which cannot wait leave to the one that does it."""

import os
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from fastio import log
from fastio.concurrency import native

T = TypeVar("T")

_thread = native.module("_thread")
#: Taken now: a later ``monkey_patch()`` exchanges the one in the module, and greenlets of a thread would be strangers.
_get_ident: Callable[[], int] = _thread.get_ident


class Exclusive:
    """A lock that can be wanted anywhere: in a signal handler, a finalizer, an import hook, after a fork.

    Callers that can wait call :meth:`change`. A caller that is inside already, and is called again (by a signal
    handler, a finalizer or another greenlet), cannot: it finds the state half changed. An import hook cannot, because
    it has the import lock of a module. They :meth:`leave` their work to the caller inside, which does it before it lets
    go. Code inside neither imports nor logs nor calls anything that may wait.

    Handlers of logging take locks, so messages from inside are logged once no thread is inside.

    It is a lock of the operating system's, with native threads for owners, under ``eventlet.monkey_patch()``, too.
    An RLock would not do: eventlet looks for those and makes them green.
    """

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        #: the thread that has the lock
        self._holder: int | None = None
        #: threads that have the lock or wait for it; they are noted before they ask for it, and so is a handler that
        #: interrupts them there
        self._inside: set[int] = set()
        self._left: deque[Callable[[], object]] = deque()
        #: messages to log: level, message, its arguments, exception
        self._messages: deque[tuple[int, str, tuple[object, ...], Any]] = deque()
        os.register_at_fork(after_in_child=self._after_fork_in_child)

    @property
    def inside(self) -> bool:
        """Whether this thread is at it already, so that it cannot wait."""
        return _get_ident() in self._inside

    @property
    def busy(self) -> bool:
        """Whether a thread is inside: :meth:`change` would wait for it."""
        return self._lock.locked()

    def change(self, work: Callable[[], T]) -> T | None:
        """Return the result of ``work()``, run while no other thread is inside; None if this one is: it runs later."""
        if self.inside:
            self.leave(work)
            return None
        me = _get_ident()
        try:
            self._inside.add(me)
            with self._lock:
                self._holder = me
                try:
                    self._work_off()
                    return work()
                finally:
                    self._work_off()
                    self._holder = None
        finally:
            self._inside.discard(me)
            try:
                self._settle()
            finally:
                self._say()

    def log(self, level: int, message: str, *arguments: object, exc_info: Any = None) -> None:
        """Log to fastio's logger, at once or, if this thread is inside, once it is done."""
        self._messages.append((level, message, arguments, exc_info))
        self._say()

    def _say(self) -> None:
        while self._messages and not self.inside:
            try:
                level, message, arguments, exc_info = self._messages.popleft()
            except IndexError:
                return
            log.log(level, message, *arguments, exc_info=exc_info)

    def leave(self, work: Callable[[], object]) -> None:
        """Have ``work()`` done now or else by the thread that is inside; never waits. Its exceptions are logged."""
        self._left.append(work)
        self._settle()
        self._say()

    def _settle(self) -> None:
        """Do what was left, unless a thread is inside; it looks again once it has let go."""
        me = _get_ident()
        while self._left and me not in self._inside:
            taken: list[bool] = []
            try:
                self._inside.add(me)
                # One call in C: no signal handler can raise between the lock and the note that it was taken.
                taken.extend(map(self._lock.acquire, (False,)))
                if taken == [False]:
                    return
                self._holder = me
                self._work_off()
            finally:
                if taken == [True]:
                    self._holder = None
                    self._lock.release()
                self._inside.discard(me)

    def _work_off(self) -> None:
        while self._left:
            try:
                self._left.popleft()()
            except Exception:
                self._messages.append((log.ERROR, "fastio: a call was not done", (), sys.exc_info()))

    def _after_fork_in_child(self) -> None:
        me = _get_ident()
        if self._holder != me:
            # The thread that had it is not in this process.
            self._holder = None
            self._lock._at_fork_reinit()
        self._inside.intersection_update({me})
