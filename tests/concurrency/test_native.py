"""Threads of the operating system that fastio starts."""

import signal
from _queue import SimpleQueue
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fastio.concurrency import native
from fastio.concurrency.threads import Workers
from fastio.io import transfers
from tests.conftest import MONKEY_PATCHED


class Interrupted(Exception):
    """The exception of a signal handler."""


@pytest.fixture
def mask() -> Iterator[Callable[[], set[int]]]:
    """Returns the signals that this thread does not take."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield lambda: signal.pthread_sigmask(signal.SIG_BLOCK, ())
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


@pytest.fixture
def interrupted() -> Iterator[Callable[..., Any]]:
    """Starts a thread, with a signal whose handler raises right before."""

    def interrupt(*args: object) -> None:
        raise Interrupted

    native_start = native.start_new_thread()

    def start(*args: Any) -> Any:
        signal.pthread_kill(native.module("_thread").get_ident(), signal.SIGUSR1)
        return native_start(*args)

    before = signal.signal(signal.SIGUSR1, interrupt)
    yield start
    signal.signal(signal.SIGUSR1, before)


def test_a_thread_takes_no_signals(mask: Callable[[], set[int]]) -> None:
    before = mask()
    masks: SimpleQueue[set[int]] = SimpleQueue()
    native.start_new_thread()(lambda: masks.put(mask()), ())
    found = masks.get(timeout=30)
    assert {signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD, signal.SIGALRM, signal.SIGRTMIN} <= found
    assert not found & {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}
    assert mask() == before


def test_a_handler_that_raises_leaves_no_signal_blocked(
    mask: Callable[[], set[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = mask()
    set_mask = native.pthread_sigmask

    def handling(how: int, signals: Any) -> Any:
        found = set_mask(how, signals)
        if how == signal.SIG_BLOCK and signals:
            raise Interrupted
        return found

    monkeypatch.setattr(native, "pthread_sigmask", handling)
    with pytest.raises(Interrupted):
        native.start_new_thread()(int, ())
    assert mask() == before


def test_a_handler_that_raises_loses_no_worker(interrupted: Callable[..., Any]) -> None:
    workers = Workers(1, lambda: interrupted)
    with pytest.raises(Interrupted):
        workers.idlest()
    (worker,) = workers
    assert workers.idlest() is worker


@pytest.mark.skipif(MONKEY_PATCHED, reason="the sender runs where there are no green threads")
def test_a_handler_that_raises_closes_nothing_of_the_sender(
    interrupted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sender = transfers.Sender()
    with monkeypatch.context() as patched:
        patched.setattr(transfers.native, "start_new_thread", lambda: interrupted)
        with pytest.raises(Interrupted):
            sender.begin()
    epoll = sender._epoll
    assert epoll is not None and not epoll.closed
    assert sender.begin() and sender._epoll is epoll
