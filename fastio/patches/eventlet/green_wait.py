"""``green_wait``: ``eventlet.green.subprocess.Popen.wait``.

Upstream looks at the child every 10 ms. With this patch, the hub waits for the child's pidfd, and then upstream's code
runs. Where there is no pidfd, upstream's code alone runs.
"""

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.concurrency import child_exit
from fastio.counters import Reason
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target

_counts = counters.of(__name__)


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of the green ``Popen.wait``."""
    from fastio.concurrency import hub_wait

    namespace = hook.original.__globals__

    def wait(self: Any, timeout: float | None = None, check_interval: float = 0.01) -> Any:
        def reap(left: float | None) -> Any:
            return wrapped(self, timeout=left, check_interval=check_interval)

        if not child_exit.keeps(self, namespace["Popen"], "poll"):
            # Upstream calls it every ``check_interval`` seconds, as a deadline may need.
            _counts.fell_back(Reason.FOREIGN)
            return reap(timeout)
        return child_exit.wait(self, timeout, hub_wait.WAITER, reap, namespace["TimeoutExpired"], _counts)

    return wait


PATCH = Patch(
    __name__,
    summary="Popen.wait() under eventlet: a pidfd in the hub instead of looking every 10 ms",
    targets=(
        Target(
            "eventlet.green.subprocess:Popen.wait",
            make,
            Uses("self, timeout=None, check_interval=0.01", "poll TimeoutExpired args"),
        ),
    ),
)
