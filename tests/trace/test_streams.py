"""Data on its way is counted, and is what it was."""

import contextlib
import gc
import io
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastio.concurrency.pace import Pace
from fastio.io import paced
from fastio.trace import spans
from fastio.trace.streams import Passed, watch

CHUNKS = st.lists(st.binary(min_size=1, max_size=50), max_size=8)


class Watch:
    """A watched stream, and how it ended."""

    def __init__(self, data: Any) -> None:
        self.outcomes: list[str] = []
        self.passed = Passed(spans.begin("test.stream"), lambda _, outcome: self.outcomes.append(outcome))
        self.data = watch(data, self.passed)


def by_next(data: Any) -> list[bytes]:
    found = []
    with contextlib.suppress(StopIteration):
        while True:
            found.append(next(data))
    return found


def by_read(data: Any) -> list[bytes]:
    return list(iter(lambda: data.read(7), b""))


@pytest.mark.parametrize(
    ("consume", "make"),
    [
        *((list, make) for make in (list, tuple, iter, lambda chunks: (chunk for chunk in chunks))),
        (by_next, iter),
        (by_read, lambda chunks: io.BytesIO(b"".join(chunks))),
        # With what yields in time, in either order.
        (lambda data: list(paced.stand_in(data, Pace())), iter),
        (list, lambda chunks: paced.stand_in(iter(chunks), Pace())),
    ],
)
@given(chunks=CHUNKS)
def test_passing_data_is_counted_and_unchanged(consume: Any, make: Any, chunks: list[bytes]) -> None:
    watched = Watch(make(chunks))
    found = consume(watched.data)
    assert b"".join(found) == b"".join(chunks) and (consume is by_read or found == chunks)
    assert (watched.passed.bytes, watched.outcomes) == (len(b"".join(chunks)), ["ok"])
    assert watched.passed.chunks >= len(found)


def test_a_consumer_that_gives_up_has_aborted() -> None:
    for give_up in (lambda data: None, lambda data: next(iter(data)), lambda data: next(data)):
        watched = Watch(iter([b"a", b"b"]))
        give_up(watched.data)
        assert watched.outcomes in ([], ["aborted"])
        del watched.data
        gc.collect()
        assert watched.outcomes == ["aborted"]


def test_closing() -> None:
    closed = []

    class Data:
        def __iter__(self) -> Iterator[bytes]:
            yield b"a"

        def close(self) -> None:
            closed.append(True)

    watched = Watch(Data())
    watched.data.close()
    assert (watched.outcomes, closed) == (["aborted"], [True])
    watched = Watch(Data())
    assert list(watched.data) == [b"a"]
    watched.data.close()
    assert (watched.outcomes, closed) == (["ok"], [True, True])


@pytest.mark.parametrize("consume", [list, next, lambda data: data.read(1)])
def test_an_error_is_raised_unchanged(consume: Any) -> None:
    error = OSError(5, "Input/output error")

    class Data:
        def __iter__(self) -> Iterator[bytes]:
            return self

        def __next__(self) -> bytes:
            raise error

        def read(self, size: int) -> bytes:
            raise error

    watched = Watch(Data())
    with pytest.raises(OSError) as caught:
        consume(watched.data)
    assert caught.value is error
    assert watched.outcomes == ["error"]
    assert watched.passed.failed
    assert watched.passed.span.values["error"] == "OSError EIO"


def test_other_objects_stay() -> None:
    number = object()
    assert watch(number, Passed(spans.begin("test.stream"))) is number


def test_the_span_is_the_current_one_only_while_the_original_runs() -> None:
    seen = []

    def data() -> Iterator[bytes]:
        for _ in range(3):
            seen.append(spans.current.get())
            yield b"a"

    watched = Watch(data())
    outer = spans.begin("test.outer")
    with outer:
        for _ in range(3):
            next(watched.data)
            assert spans.current.get() is outer
    assert seen == [watched.passed.span] * 3
    assert spans.current.get() is None


def test_waits_of_the_hub_while_the_original_runs() -> None:
    def data() -> Iterator[bytes]:
        for number in range(3):
            # As the patch of the hub does it.
            found = spans.current.get()
            assert found is not None
            found.waits += number
            found.wait_ns += 100 * number
            yield b"a"

    watched = Watch(data())
    with spans.begin("test.outer") as outer:
        for _ in watched.data:
            # Its consumer's.
            outer.waits += 10
    assert (watched.passed.waits, watched.passed.wait_ns) == (3, 300)
    assert (outer.waits, outer.wait_ns) == (33, 300)
