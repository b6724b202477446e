"""Shared by the tests of tracing."""

import pathlib
from collections.abc import Callable, Iterator

import pytest

from fastio.trace import recorder, spans
from tests.trace import traces


@pytest.fixture(autouse=True)
def no_span_is_left() -> Iterator[None]:
    spans.current.set(None)
    yield
    spans.current.set(None)


@pytest.fixture
def recorded(tmp_path: pathlib.Path) -> Iterator[Callable[[], list[traces.Span]]]:
    """Records while the test runs; a call ends that and returns the spans, which are well-formed."""
    recorder.start(str(tmp_path))

    def recorded() -> list[traces.Span]:
        recorder.stop()
        found = traces.spans(tmp_path)
        traces.well_formed(found)
        return found

    yield recorded
    recorder.stop()
