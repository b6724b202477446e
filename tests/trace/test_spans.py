"""Spans: which one is the current one, and what the end of one says."""

from collections.abc import Callable
from typing import Any

import pytest

from fastio.trace import spans
from tests.trace import traces

Recorded = Callable[[], list[traces.Event]]


def ends(found: list[traces.Event]) -> dict[str, dict[str, Any]]:
    return {event.name: event.values for event in found if event.kind == "E"}


def test_a_span_is_the_current_one_until_it_ends(recorded: Recorded) -> None:
    with spans.begin("test.outer") as outer:
        with spans.begin("test.inner") as inner:
            assert spans.current.get() is inner
        assert spans.current.get() is outer
        with pytest.raises(OSError), spans.begin("test.failed"):
            raise OSError(5, "Input/output error")
        assert spans.current.get() is outer
    assert spans.current.get() is None
    assert inner.root is outer.root is outer
    found = recorded()
    assert {event.name: event.parent for event in found} == {
        "test.outer": None, "test.inner": outer.number, "test.failed": outer.number
    }  # fmt: skip
    assert ends(found) == {
        "test.inner": {"outcome": "ok"}, "test.outer": {"outcome": "ok"},
        "test.failed": {"outcome": "error", "error": "OSError: [Errno 5] Input/output error"},
    }  # fmt: skip


def test_the_first_end_counts(recorded: Recorded) -> None:
    span = spans.begin("test.span")
    span.end()
    span.end(spans.ABORTED)
    span.fail(OSError(5, "Input/output error"))
    assert ends(recorded()) == {"test.span": {"outcome": "ok"}}


def test_the_first_error_counts(recorded: Recorded) -> None:
    span = spans.begin("test.span")
    span.note(OSError(28, "No space left on device"))
    span.fail(OSError(5, "Input/output error"))
    assert ends(recorded())["test.span"]["error"] == "OSError: [Errno 28] No space left on device"


def test_waits_of_a_span_are_those_of_the_spans_around_it(recorded: Recorded) -> None:
    with spans.begin("test.outer") as outer:
        outer.waits, outer.wait_ns = 1, 10
        for count in (2, 3):
            with spans.begin("test.middle"), spans.begin(f"test.inner-{count}") as inner:
                inner.waits, inner.wait_ns = count, count * 100
    found = ends(recorded())
    assert found["test.inner-3"] == found["test.middle"] == {"waits": 3, "wait_ns": 300, "outcome": "ok"}
    assert found["test.outer"] == {"waits": 6, "wait_ns": 510, "outcome": "ok"}
