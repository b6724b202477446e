"""``fix_input_resume``: after a time-out the next ``communicate()`` sends the rest of the input.

CPython up to 3.14 leaves it unsent and stdin open, so a child that waits for its end never exits; 3.15 sends it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastio.patches import _targets
from fastio.registry import Patch


def make(below: Callable[..., Any], slot: Any) -> Callable[..., Any]:
    """The wrapper of ``Popen._communicate``."""

    def _communicate(self: Any, input: Any, endtime: float | None, orig_timeout: float | None) -> tuple[Any, Any]:
        if self._communication_started and not input and self._input and self.stdin and not self.stdin.closed:
            input = self._input
        return below(self, input, endtime, orig_timeout)

    return _communicate


PATCH = Patch(
    name="fix_input_resume",
    summary="communicate() after a time-out sends the rest of the input, as CPython 3.15 does",
    targets=(_targets.native_communicate(make), _targets.green_communicate(make)),
)
