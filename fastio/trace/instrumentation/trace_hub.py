"""``trace_hub``: how often, and for how long, eventlet's hub ran other greenlets during a span.

Everything that waits under eventlet calls ``BaseHub.switch()``. The wait belongs to the innermost span of the
greenlet. It is part of the span's end, as ``waits`` and ``wait_ns``, and no separate event.
"""

import time
from collections.abc import Callable
from typing import Any

from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target
from fastio.trace.spans import current

_monotonic = time.monotonic_ns


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``BaseHub.switch``."""

    def switch(self: Any) -> Any:
        span = current.get()
        if span is None:
            return wrapped(self)
        began = _monotonic()
        try:
            return wrapped(self)
        finally:
            span.waits += 1
            span.wait_ns += _monotonic() - began

    return switch


PATCH = Patch(
    __name__,
    summary="eventlet: how long a span waits in the hub",
    targets=(
        Target(
            "eventlet.hubs.hub:BaseHub.switch",
            make,
            Uses("self", "greenlet switch"),
            direct=True,
        ),
    ),
)
