"""``wait``: ``subprocess.Popen._wait`` with a timeout, on native threads.

Upstream looks at the child after 1, 2, 4 … ms, and then every 50 ms. With this patch, a pidfd shows when the child has
exited, and then upstream's code runs. Another thread's changes are seen as early as in upstream.
Upstream's code alone runs where there is no pidfd, and in a thread that has a hub, because its ``time.sleep`` may be
the call that lets other greenlets run. From 3.15 on, CPython itself waits for a pidfd, and the patch is not needed.
"""

import os
import time
from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.concurrency import child_exit, current, waiting
from fastio.counters import Cause, Reason
from fastio.patches.subprocess import _popen
from fastio.patching import holders
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch

_counts = counters.of(__name__)

#: Seconds between two looks of upstream: the first is after twice the least.
_LEAST, _MOST = 0.0005, 0.05


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Popen._wait``."""
    namespace = hook.original.__globals__
    try_wait = holders.native_popen()._try_wait

    def wait_for_exit(popen: Any, pidfd: int, endtime: float) -> None:
        """Wait for the exit or the end of the time, or until another thread has changed what upstream looks at."""
        selector = waiting.NATIVE.open_selector()
        selector.watch_read(pidfd)
        delay = _LEAST
        while popen.returncode is None and "_try_wait" not in vars(popen) and type(popen)._try_wait is try_wait:
            left = endtime - time.monotonic()
            delay = min(2 * delay, left, _MOST)
            if left <= 0 or selector.wait(delay):
                return

    def _wait(self: Any, timeout: float | None) -> Any:
        # Without a timeout upstream does not poll: it is in waitpid() until the child has exited.
        if timeout is None or self.returncode is not None or not timeout > 0:
            return wrapped(self, timeout=timeout)
        pidfd = child_exit.open_pidfd(self.pid) if current.may_block() else Reason.HUB
        if isinstance(pidfd, Cause):
            _counts.fell_back(pidfd)
            return wrapped(self, timeout=timeout)
        _counts.took()
        endtime = time.monotonic() + timeout
        try:
            wait_for_exit(self, pidfd, endtime)
        finally:
            os.close(pidfd)
        try:
            return wrapped(self, timeout=max(0.0, endtime - time.monotonic()))
        except namespace["TimeoutExpired"]:
            raise namespace["TimeoutExpired"](self.args, timeout) from None

    return _wait


PATCH = Patch(
    __name__,
    summary="Popen.wait(timeout) on native threads: a pidfd besides looking every 50 ms",
    targets=(
        _popen.native_target(
            make,
            "_wait",
            Uses("self, timeout", "_try_wait TimeoutExpired args"),
            relies_on={"_try_wait": Uses("self, wait_flags", "waitpid pid")},
            python="< 3.15",
        ),
    ),
)
