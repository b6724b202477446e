"""``fix_wait_poll``: ``wait(timeout)`` of CPython's Popen where there is no ``select.poll()``.

From 3.15 on, CPython waits for a child with ``select.poll()``, which ``eventlet.monkey_patch()`` takes away. The native
``Popen`` is still used by who took it before, or with ``monkey_patch(subprocess=False)``. Its ``wait(timeout)`` and
``communicate(timeout=…)`` then raise ``AttributeError``, and so does the green ``communicate()`` after Ctrl-C. With
this patch, CPython looks at the child now and then, as earlier releases do, and other greenlets run meanwhile.
"""

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.patches.subprocess import _popen
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch

_counts = counters.of(__name__)


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Popen._wait_pidfd``, which returns False where it has not waited."""
    namespace = hook.original.__globals__

    def _wait_pidfd(self: Any, timeout: float) -> Any:
        if hasattr(namespace["select"], "poll"):
            return wrapped(self, timeout)
        _counts.took()
        return False

    return _wait_pidfd


PATCH = Patch(
    __name__,
    summary="wait(timeout) of CPython 3.15 does without select.poll() where eventlet has taken it away",
    changes="wait(timeout) of CPython 3.15 waits, and does not raise AttributeError, where select.poll() is gone",
    targets=tuple(
        target(
            make,
            "_wait_pidfd",
            Uses("self, timeout", "select poll"),
            relies_on={"_wait": Uses("self, timeout", "_wait_pidfd _wait_kqueue sleep")},
            python=">= 3.15",
        )
        for target in (_popen.native_target, _popen.green_target)
    ),
)
