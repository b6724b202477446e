"""Runs calls that would block the hub until they return in native threads: see :mod:`fastio.concurrency.threads`."""

import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any

from fastio.concurrency import current
from fastio.concurrency.events import new_event
from fastio.concurrency.threads import PATIENCE, Mark, Workers, step

#: Calls at the same time: as many as eventlet's own pool (``EVENTLET_THREADPOOL_SIZE``) has threads.
MOST = 20
#: Seconds between two looks at a call of which the hub cannot tell.
_INTERVAL = 0.002

_workers = Workers(MOST)


def run(function: Callable[..., Any], *args: Any) -> Any:
    """The result of ``function(*args)``; other greenlets run meanwhile. Natively, and in the hub, a plain call.

    An exception that arrives while it runs (a time-out, a kill) comes through once the call has ended, as it would if
    the hub had been held: nothing that a native thread is still working on is closed or reused.

    :param function: written in C, and raises no exception: those of :mod:`fastio.io.libc` tell a failure by their
        result
    """
    worker = _workers.idlest() if current.hub() is not None else None
    if worker is None:
        return function(*args)
    results: deque[Any] = deque()
    worker.submit(map(results.append, step(function, *args)))
    with worker.mark(new_event()) as mark:
        _wait(mark, results)
    return results[0]


def _wait(mark: Mark, results: deque[Any]) -> None:
    try:
        mark.wait()
    except BaseException:
        from fastio.concurrency.hub_wait import WAITER

        while not mark.reached and not results:
            # The first exception counts. The hub may raise one for each wait for a descriptor.
            with contextlib.suppress(BaseException):
                WAITER.until(lambda: bool(results), PATIENCE, _INTERVAL)
                mark.wait()
        raise
