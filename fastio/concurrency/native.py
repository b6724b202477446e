"""The standard library's own objects, even if eventlet has replaced them.

Under ``eventlet.monkey_patch()``, threads, locks and sleeps are those of greenlets. Code that needs those of the
operating system asks here, at each use, because the service may monkey patch at any time.
"""

import _signal  # C, without signal's enumerations, which take long to make
import contextlib
import importlib
import sys
from _signal import pthread_sigmask
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

#: Signals that fastio's threads do not take: all but those that a thread causes itself.
SIGNALS = frozenset(_signal.valid_signals()) - {
    _signal.SIGABRT, _signal.SIGBUS, _signal.SIGFPE, _signal.SIGILL, _signal.SIGSEGV, _signal.SIGSYS, _signal.SIGTRAP,
}  # fmt: skip


def module(name: str) -> Any:
    """The standard library's own ``name``."""
    patcher = sys.modules.get("eventlet.patcher")
    if patcher is None:
        return importlib.import_module(name)
    return patcher.original(name)


def start_new_thread() -> Callable[..., Any]:
    """``_thread.start_new_thread`` of the operating system's threads, for a thread that takes no signals.

    A signal interrupts the thread that takes it, and only the service's own thread has something to interrupt: the
    wait of its hub, or uWSGI's loop.
    """
    return partial(_start, module("_thread").start_new_thread)


def _start(start: Callable[..., Any], function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    with without_signals():
        return start(function, args)


@contextlib.contextmanager
def without_signals() -> Iterator[None]:
    """Have this thread take no signals meanwhile: what their handlers raise comes before, or when all is done."""
    # Each call runs the handlers that are due. The mask is read by one that changes nothing, as the next one may raise.
    before = pthread_sigmask(_signal.SIG_BLOCK, ())
    try:
        pthread_sigmask(_signal.SIG_BLOCK, SIGNALS)
        yield
    finally:
        pthread_sigmask(_signal.SIG_SETMASK, before)
