"""``fix_input_resume``: after a time-out the next ``communicate()`` sends the rest of the input.

CPython up to 3.14 leaves it unsent and stdin open, so a child that waits for its end never exits; 3.15 sends it.

It is not in the default, because a program can see that it waits for longer. After a time-out and ``kill()`` the next
``communicate()`` returns once the outputs have ended. With this patch, as in CPython 3.15, it also waits until the rest
of the input is taken; and that never happens while another process, such as a child of the one that was killed, has
the pipe open and does not read.

Ask for it, ``also=fix_input_resume`` or ``FASTIO_ALSO=fix_input_resume``, where no program does this.
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
    default=False,
)
