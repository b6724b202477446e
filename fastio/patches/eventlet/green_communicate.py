"""``green_communicate``: ``eventlet.green.subprocess.Popen._communicate``.

Upstream runs CPython's code with green ``select`` and ``os``. It makes two trips through the hub for every 32 KiB that
it reads, and for every 512 bytes that it writes, because eventlet's green select has no PIPE_BUF. With this patch,
each trip moves everything that the pipe holds, up to the transfer's share of ``yield_bytes``.
"""

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.concurrency import budget
from fastio.concurrency.pace import Pace
from fastio.patches.subprocess import _popen
from fastio.patching.known_code import KNOWN
from fastio.patching.registry import Patch

_counts = counters.of(__name__)


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The replacement of the green ``Popen._communicate``."""
    from fastio.concurrency import hub_wait

    mode = _popen.Mode(hub_wait.WAITER, lambda settings: Pace(budget.FLOOR), may_wait=lambda: True)
    return _popen.replacement(wrapped, hook, mode, _counts)


PATCH = Patch(
    __name__,
    summary="Popen.communicate() under eventlet: the same, with one trip through the hub per turn",
    targets=(_popen.green_target(make, "_communicate", KNOWN, relies_on=_popen.RELIES_ON),),
)
