"""What the tests of tracing share."""

import pathlib
from collections.abc import Callable, Iterator

import pytest

from fastio.trace import recorder, spans
from fastio.trace.recorder import Limits
from tests.trace import traces


@pytest.fixture(autouse=True)
def no_span_is_left() -> Iterator[None]:
    spans.current.set(None)
    yield
    spans.current.set(None)


@pytest.fixture
def recorded(tmp_path: pathlib.Path) -> Iterator[Callable[[], list[traces.Event]]]:
    """Records while the test runs; a call ends that and returns the events, which are well-formed."""
    recorder.start(str(tmp_path), Limits(1 << 16, 64 << 20, 1 << 30))

    def recorded() -> list[traces.Event]:
        recorder.stop()
        found = traces.events(tmp_path)
        traces.well_formed(found)
        return found

    yield recorded
    recorder.stop()
