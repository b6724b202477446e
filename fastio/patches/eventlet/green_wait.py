"""``green_wait``: ``eventlet.green.subprocess.Popen.wait``.

Upstream looks at the child every 10 ms. With this patch, the hub also watches the child's pidfd, and upstream's code
looks at once when the child exits. It sees other changes, such as another greenlet's, as early as without the patch.
Where there is no pidfd, upstream's code alone runs.
"""

import os
from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.concurrency import child_exit
from fastio.counters import Cause
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target

_counts = counters.of(__name__)


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of the green ``Popen.wait``."""
    from fastio.concurrency import hub_wait

    code = hook.original.__code__

    def wait(self: Any, timeout: float | None = None, check_interval: float = 0.01) -> Any:
        def look() -> Any:
            return wrapped(self, timeout=timeout, check_interval=check_interval)

        if self.returncode is not None or timeout == 0:
            return look()
        pidfd = child_exit.open_pidfd(self.pid, hub_wait.unwatched)
        if isinstance(pidfd, Cause):
            _counts.fell_back(pidfd)
            return look()
        _counts.took()
        try:
            with hub_wait.sleeps_end_early(code, pidfd):
                return look()
        finally:
            os.close(pidfd)

    return wait


PATCH = Patch(
    __name__,
    summary="Popen.wait() under eventlet: a pidfd in the hub besides looking every 10 ms",
    targets=(
        Target(
            "eventlet.green.subprocess:Popen.wait",
            make,
            Uses("self, timeout=None, check_interval=0.01", "poll sleep"),
        ),
    ),
)
