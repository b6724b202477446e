"""What the tests of tracing share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fastio.trace import spans


@pytest.fixture(autouse=True)
def no_span_is_left() -> Iterator[None]:
    spans.current.set(None)
    yield
    spans.current.set(None)
