"""A selector of eventlet's hub whose greenlet something else resumes in its place."""

import os
from typing import Any

import pytest

eventlet = pytest.importorskip("eventlet")

from eventlet import hubs  # noqa: E402

from fastio.concurrency.hub_wait import HubSelector  # noqa: E402


class Interrupted:
    """The hub; a signal handler that yields runs just before each switch to it."""

    def __init__(self) -> None:
        self._hub = hubs.get_hub()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hub, name)

    def switch(self) -> Any:
        eventlet.sleep(0.02)
        return self._hub.switch()


@pytest.fixture
def selector(monkeypatch: pytest.MonkeyPatch) -> Any:
    with HubSelector() as made, eventlet.Timeout(10):
        monkeypatch.setattr(made, "_hub", Interrupted())
        yield made


def test_readiness_that_a_handler_has_consumed_is_reported_again(selector: HubSelector) -> None:
    reader, writer = os.pipe()
    selector.watch_read(reader)
    os.write(writer, b"x")
    assert selector.wait(None) == [reader]
    selector.forget(reader)
    os.close(reader)
    os.close(writer)


def test_a_timeout_that_a_handler_has_consumed_is_repeated(selector: HubSelector) -> None:
    assert selector.wait(0.01) == []


def test_an_error_that_a_handler_has_consumed_is_repeated(selector: HubSelector) -> None:
    reader, writer = os.pipe()
    selector.watch_read(reader)
    # As if the number had been given to another file.
    hubs.get_hub().schedule_call_global(0, hubs.notify_opened, reader)
    with pytest.raises(hubs.IOClosed):
        selector.wait(None)
    os.close(reader)
    os.close(writer)
