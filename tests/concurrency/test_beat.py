"""What a process does beside its work ends whole."""

import os

import pytest

from fastio.concurrency import beat
from fastio.concurrency.beat import Beat
from tests.conftest import MONKEY_PATCHED
from tests.eventually import until


@pytest.mark.skipif(MONKEY_PATCHED, reason="a greenlet does not run between two lines of another one")
def test_who_ends_it_does_not_write_to_what_it_has_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread may look at any moment, also just before it is woken."""
    calls: list[None] = []
    made = Beat(0.001, lambda: calls.append(None), lambda: None)
    assert made.begin()
    until(lambda: calls)
    write = os.eventfd_write

    def late(descriptor: int, value: int) -> None:
        seen = len(calls)
        until(lambda: len(calls) > seen + 1 or made._epoll.closed)
        write(descriptor, value)

    monkeypatch.setattr(beat.os, "eventfd_write", late)
    made.end()
    until(lambda: made._epoll.closed)
