"""Threads of the operating system that fastio starts."""

import signal
from _queue import SimpleQueue

from fastio.concurrency import native


def test_a_thread_takes_no_signals() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    masks: SimpleQueue[set[int]] = SimpleQueue()
    native.start_new_thread()(lambda: masks.put(signal.pthread_sigmask(signal.SIG_BLOCK, ())), ())
    mask = masks.get(timeout=30)
    assert {signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD, signal.SIGALRM, signal.SIGRTMIN} <= mask
    assert not mask & {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
