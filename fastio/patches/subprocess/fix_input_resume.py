"""``fix_input_resume``: after a time-out, the next ``communicate()`` sends the rest of the input.

Up to 3.13.9, and in 3.14.0, CPython does not send the rest and leaves stdin open, so a child that waits for the end of
its input never exits. Later releases send it by themselves, and the patch is not needed there. But they wait until all
of it is sent, even if the child has exited and another process, which the child left behind, holds its stdin. With this
patch, the rest is sent only as long as the older releases would wait anyhow: until the outputs have ended and the child
has exited. So ``kill()`` and ``communicate()`` after a time-out return when they always did.
"""

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.patches.eventlet import green_communicate
from fastio.patches.subprocess import _popen, communicate
from fastio.patches.subprocess._dialects import RESUMES_INPUT
from fastio.patching.registry import Layer, Make, Patch

_counts = counters.of(__name__)


def _make(mode: Callable[[Any], _popen.Mode]) -> Make:
    def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
        """The wrapper of ``Popen._communicate``."""
        resumed = _popen.replacement(wrapped, hook, mode(hook), _counts, resumes=True)

        def _communicate(self: Any, input: Any, endtime: float | None, orig_timeout: float | None) -> tuple[Any, Any]:
            has_rest = self._communication_started and self._input and self.stdin and not self.stdin.closed
            return (resumed if has_rest else wrapped)(self, input, endtime, orig_timeout)

        return _communicate

    return make


PATCH = Patch(
    __name__,
    summary="communicate() after a time-out sends the rest of the input, as newer releases of CPython do",
    changes="communicate() after a time-out sends the rest of the input",
    layer=Layer.FIX,
    counted=False,
    after=("fix_input_items",),
    targets=(
        _popen.native_target(_make(communicate.mode), not_needed_from=RESUMES_INPUT),
        _popen.green_target(_make(green_communicate.mode), not_needed_from=RESUMES_INPUT),
    ),
)
