"""``fix_closed_stdin``: ``communicate()`` after ``stdin.close()`` returns the outputs.

Up to 3.13.9, and in 3.14.0, CPython raises ``ValueError: flush of closed file``. Later releases return the outputs by
themselves, and the patch is not needed there.
"""

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.patches.subprocess import _popen
from fastio.patches.subprocess._dialects import RESUMES_INPUT
from fastio.patching.registry import Layer, Patch

_counts = counters.of(__name__)


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Popen._communicate``."""

    def _communicate(self: Any, input: Any, endtime: float | None, orig_timeout: float | None) -> tuple[Any, Any]:
        stdin = self.stdin
        # "is True": a stand-in for a file may answer with anything.
        if not stdin or stdin.closed is not True or self._communication_started:
            return wrapped(self, input, endtime, orig_timeout)
        _counts.took()
        self.stdin = None
        try:
            return wrapped(self, None, endtime, orig_timeout)
        finally:
            self.stdin = stdin

    return _communicate


PATCH = Patch(
    __name__,
    summary="communicate() after stdin.close() returns the outputs, as CPython 3.13.10 does",
    changes="communicate() after stdin.close() returns the outputs instead of raising ValueError",
    layer=Layer.FIX,
    counted=False,
    after=("fix_input_resume",),
    targets=(
        _popen.native_target(make, relies_on=(), contract=_popen.WRAPPED, not_needed_from=RESUMES_INPUT),
        _popen.green_target(make, relies_on=(), contract=_popen.WRAPPED, not_needed_from=RESUMES_INPUT),
    ),
)
