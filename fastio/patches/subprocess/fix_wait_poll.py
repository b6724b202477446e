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
from fastio.patching.registry import Layer, Patch

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


CONTRACT = """
    def _wait_pidfd(self, timeout):
        return False
        return True
        select.poll()
    def _wait(self, timeout):
        self._wait_pidfd(timeout) or self._wait_kqueue(timeout)
        time.sleep(delay)
"""

PATCH = Patch(
    __name__,
    summary="wait(timeout) of CPython 3.15 does without select.poll() where eventlet has taken it away",
    changes="wait(timeout) of CPython 3.15 waits, and does not raise AttributeError, where select.poll() is gone",
    layer=Layer.FIX,
    counted=False,
    targets=tuple(
        target(make, "_wait_pidfd", ("_wait",), CONTRACT, needed_from="3.15")
        for target in (_popen.native_target, _popen.green_target)
    ),
)
