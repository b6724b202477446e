"""Native threads that run functions written in C, and no Python.

Python collects garbage in the thread that allocates (up to 3.11), or between two instructions of any thread (later).
It runs the finalizers of what it finds in that same thread. Under eventlet, a service's finalizers belong in the
service's own thread. If one of them takes a green lock elsewhere, it makes a second hub, and whoever waits for that
lock waits for ever. These threads therefore never execute an instruction of Python, and never allocate an object that
the collector counts. Each of them works through iterators of :mod:`itertools`. The steps of these iterators are calls
of C functions with arguments that were made before. The last C function stores the results, usually in a deque.

Nothing here takes a lock, so a finalizer, a signal handler or a fork may come at any time. Steps that belong together,
such as to note a job and to hand it over, are one call of a C function as well: the exception of a signal handler
(KeyboardInterrupt, for one) comes before or after it.
"""

from __future__ import annotations

import os
import weakref
from _queue import SimpleQueue  # C, and native also where eventlet has replaced queue's
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, starmap
from typing import Any, Protocol

from fastio.concurrency import native

#: Seconds after which whoever waits checks that the thread is still there.
PATIENCE = 5.0


def step(function: Callable[..., Any], *args: Any) -> Iterator[Any]:
    """One call for a worker.

    :param function: written in C, without side effects that call Python; an exception that it raises ends the thread
    """
    return starmap(function, (args,))


def at_once(*steps: Iterable[Any]) -> None:
    """Take ``steps`` one after the other in this thread; no signal handler runs in between."""
    deque(chain(*steps), maxlen=0)


class Event(Protocol):
    """One wait of a thread or greenlet for a worker."""

    def set(self) -> Iterator[Any]:
        """The steps with which the worker sets it."""
        ...

    def wait(self, seconds: float) -> bool:
        """Whether it was set, be it before the call; False after ``seconds``."""
        ...

    def close(self) -> Iterator[Any]:
        """The steps that give back what the event holds; nothing sets it or waits for it any more then."""
        ...


class Mark:
    """A place in what a worker has to do: everything before it is done once it has been reached."""

    def __init__(self, worker: Worker, event: Event) -> None:
        self._worker = worker
        self._event = event
        self.reached = False
        worker.submit(event.set())

    def wait(self) -> None:
        while not self.reached:
            self.reached = self._event.wait(PATIENCE)
            self._worker.revive()

    def __enter__(self) -> Mark:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self.reached:
            at_once(self._event.close())
        else:
            # The worker has yet to set it.
            self._worker.submit(self._event.close())


class Worker:
    """One thread and what it has to do, in the order in which it was submitted.

    :param start: ``_thread.start_new_thread`` of the system
    :raises RuntimeError: the thread cannot be started
    """

    def __init__(self, start: Callable[..., Any]) -> None:
        self._start = start
        self._jobs: SimpleQueue[Iterator[Any]] = SimpleQueue()
        self._unfinished: deque[None] = deque()
        #: a step has raised, which no step should, and what came after it in its job was lost
        self.failed = False
        self._start_thread()

    def _start_thread(self) -> None:
        # Takes what it is given and keeps nothing: the loop of the thread, in C.
        sink: deque[Any] = deque(maxlen=0)
        self._sink = weakref.ref(sink)
        self._start(sink.extend, (chain.from_iterable(iter(self._jobs.get, None)),))

    def revive(self) -> None:
        """Have a thread go on with the next job where a step's exception has ended the one before."""
        if self._sink() is None:
            self.failed = True
            # The lost job does not take itself away.
            self._unfinished.pop()
            self._start_thread()

    def load(self) -> int:
        """Jobs that are not finished."""
        return len(self._unfinished)

    def submit(self, *steps: Iterable[Any], noting: Iterable[Any] = ()) -> None:
        """Queue ``steps`` on this worker.

        :param noting: steps that are taken here, at once with handing the others over: both is done, or nothing
        """
        self.revive()
        job = chain(*steps, starmap(self._unfinished.pop, ((),)))
        at_once(noting, step(self._unfinished.append, None), step(self._jobs.put, job))

    def mark(self, event: Event) -> Mark:
        """An event that is set after everything submitted so far; a context manager, which gives the event back."""
        return Mark(self, event)

    def finish(self, new_event: Callable[[], Event]) -> None:
        """Wait for everything that was submitted so far."""
        with self.mark(new_event()) as mark:
            mark.wait()


class Workers:
    """Up to ``most`` workers of this process, each started when those before it are busy.

    :param native_start: gives ``_thread.start_new_thread`` of the system, also where eventlet has replaced it
    """

    def __init__(self, most: int, native_start: Callable[[], Callable[..., Any]] = native.start_new_thread) -> None:
        self.most = most
        self._native_start = native_start
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._workers: list[Worker] = []
        self._to_start = [None] * self.most

    def _own(self) -> list[Worker]:
        # The threads are the parent's in a forked child, also where Python does not know of the fork, as under uWSGI.
        if self._pid != os.getpid():
            self._reset()
        return self._workers

    def __iter__(self) -> Iterator[Worker]:
        return iter(tuple(self._own()))

    def __len__(self) -> int:
        return len(self._own())

    def idlest(self) -> Worker | None:
        """The worker with the least to do; None if there is none and none can be started."""
        found = min(self._own(), key=Worker.load, default=None)
        return found if found is not None and not found.load() else self._one_more() or found

    def _one_more(self) -> Worker | None:
        if not self._to_start:
            return None
        with native.without_signals():
            try:
                # list.pop() and append() are atomic, which is all the locking that threads need here.
                self._to_start.pop()
            except IndexError:
                return None
            try:
                worker = Worker(self._native_start())
            except RuntimeError:
                # The system's limit is reached, or the interpreter ends.
                self._to_start.append(None)
                return None
            self._workers.append(worker)
            return worker
