"""``fix_input_items``: all of an ``input`` is sent, even if its items are larger than a byte.

CPython compares the number of written bytes with the number of items. So ``communicate(array("I", …))`` loses data.
From 3.13.10 and 3.14.1 on, it sends all of a ``memoryview``, but still not of an array.
"""

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.patches.subprocess import _popen
from fastio.patching.registry import Layer, Patch

_counts = counters.of(__name__)


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Popen._communicate``."""

    def _communicate(self: Any, input: Any, endtime: float | None, orig_timeout: float | None) -> tuple[Any, Any]:
        if input and self.stdin and not self.text_mode and not isinstance(input, (bytes, str)):
            try:
                view = memoryview(input)
            except TypeError:
                # Upstream raises it, at its place.
                return wrapped(self, input, endtime, orig_timeout)
            if view.itemsize != 1 and view.contiguous:
                _counts.took()
                input = view.cast("B")
        return wrapped(self, input, endtime, orig_timeout)

    return _communicate


PATCH = Patch(
    __name__,
    summary="communicate(input) of arrays and views with items larger than a byte sends all of it",
    changes="all of an input is sent, even if its items are larger than a byte",
    layer=Layer.FIX,
    counted=False,
    targets=(
        _popen.native_target(make, relies_on=(), contract=_popen.WRAPPED),
        _popen.green_target(make, relies_on=(), contract=_popen.WRAPPED),
    ),
)
