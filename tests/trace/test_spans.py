"""Spans: which one is the current one, and what the end of one says."""

from collections.abc import Callable
from typing import Any

import pytest

from fastio.trace import spans
from tests.trace import traces

Recorded = Callable[[], list[traces.Span]]


def ends(found: list[traces.Span]) -> dict[str, dict[str, Any]]:
    return {span.name: span.values for span in found}


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
    assert [(span.name, span.parent, span.trace) for span in found] == [
        ("test.inner", outer.id, outer.trace), ("test.failed", outer.id, outer.trace), ("test.outer", "", outer.trace)
    ]  # fmt: skip
    assert {span.line for span in found} == {0}
    assert ends(found) == {
        "test.inner": {"outcome": "ok"}, "test.outer": {"outcome": "ok"},
        "test.failed": {"outcome": "error", "error": "OSError EIO"},
    }  # fmt: skip


def test_the_first_end_and_the_first_error_count(recorded: Recorded) -> None:
    span = spans.begin("test.span")
    span.end()
    span.end(spans.ABORTED)
    span.fail(OSError(5, "Input/output error"))
    failed = spans.begin("test.failed")
    failed.note(OSError(28, "No space left on device"))
    failed.fail(OSError(5, "Input/output error"))
    assert ends(recorded()) == {
        "test.span": {"outcome": "ok"}, "test.failed": {"outcome": "error", "error": "OSError ENOSPC"}
    }  # fmt: skip


def test_waits_of_a_span_are_those_of_the_spans_around_it(recorded: Recorded) -> None:
    with spans.begin("test.outer") as outer:
        outer.waits, outer.wait_ns = 1, 10
        for count in (2, 3):
            with spans.begin("test.middle"), spans.begin(f"test.inner-{count}") as inner:
                inner.waits, inner.wait_ns = count, count * 100
    found = ends(recorded())
    assert found["test.inner-3"] == found["test.middle"] == {"waits": 3, "wait_ns": 300, "outcome": "ok"}
    assert found["test.outer"] == {"waits": 6, "wait_ns": 510, "outcome": "ok"}


def test_spans_that_end_after_their_root_are_written_as_well(recorded: Recorded) -> None:
    root = spans.Span("test.root")
    late = spans.Span("test.late", root)
    root.end()
    late.end()
    assert [(span.name, span.line) for span in recorded()] == [("test.root", 0), ("test.late", 1)]


def test_a_line_has_a_bounded_number_of_spans(recorded: Recorded) -> None:
    with spans.begin("test.root"):
        for _ in range(250):
            spans.begin("test.inner").end()
    lines = [span.line for span in recorded()]
    assert [lines.count(number) for number in range(3)] == [100, 100, 51]


@pytest.mark.parametrize(
    "given", ["req-5ba9f1b2-6a0c-4f0e-9a42-4ef5b8e0a1c3", "req-00000000-0000-0000-0000-000000000000"]
)
def test_client_and_server_have_one_trace_by_the_global_id(recorded: Recorded, given: str) -> None:
    from fastio.trace import values

    one, other = (spans.Span("test.root", None, {"global": values.request_id(given)}) for _ in range(2))
    nothing = given.strip("req-0") == ""
    assert one.id != other.id and (one.trace == other.trace) is not nothing and int(one.trace, 16)


def test_only_what_is_recordable_is_recorded(recorded: Recorded) -> None:
    span = spans.begin("test.span")
    span.values.update(text="SECRET", data=b"SECRET", other=object(), flag=True, number=5, half=0.5)
    span.end()
    assert ends(recorded()) == {"test.span": {"number": 5, "outcome": "ok"}}
