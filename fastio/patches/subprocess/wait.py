"""``wait``: ``subprocess.Popen._wait`` with a timeout, on native threads.

Upstream looks at the child after 1, 2, 4 … ms, and then every 50 ms. With this patch, a pidfd tells when the child has
exited, and then upstream's code runs. Upstream's code alone runs where there is no pidfd, and in a thread that has a
hub, because its ``time.sleep`` may be the call that lets other greenlets run. From 3.15 on, CPython itself waits for a
pidfd, and the patch is not needed.
"""

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.concurrency import child_exit, current, waiting
from fastio.counters import Reason
from fastio.patches.subprocess import _popen
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch

_counts = counters.of(__name__)


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Popen._wait``."""
    namespace = hook.original.__globals__

    def _wait(self: Any, timeout: float | None) -> Any:
        # Without a timeout upstream does not poll: it is in waitpid() until the child has exited.
        if timeout is None:
            return wrapped(self, timeout=timeout)
        if not current.may_block():
            _counts.fell_back(Reason.HUB)
            return wrapped(self, timeout=timeout)

        def reap(left: float | None) -> Any:
            return wrapped(self, timeout=left)

        return child_exit.wait(self, timeout, waiting.NATIVE, reap, namespace["TimeoutExpired"], _counts)

    return _wait


PATCH = Patch(
    __name__,
    summary="Popen.wait(timeout) on native threads: a pidfd instead of looking every 50 ms",
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
