"""``trace_subprocess``: ``Popen.communicate()``, natively and under eventlet, as ``subprocess.communicate``.

Of the command, only the program's name is recorded, because arguments may be secret. For a command of a shell it is
``sh``.
"""

from collections.abc import Callable
from typing import Any

from fastio.patches.subprocess import _popen
from fastio.patching.registry import Layer, Patch
from fastio.trace import redaction, spans


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Popen.communicate``."""

    def communicate(self: Any, input: Any = None, timeout: float | None = None) -> Any:
        if not spans.is_on():
            return wrapped(self, input, timeout)
        with spans.begin("subprocess.communicate", program=redaction.program(self.args)) as span:
            found = wrapped(self, input, timeout)
            span.values["bytes"] = sum(len(data) for data in (input, *found) if data)
            span.values["chunks"] = _chunks(self)
            span.values["code"] = self.returncode
            return found

    return communicate


def _chunks(popen: Any) -> int:
    """How many pieces of output were kept; one where it was read in one go."""
    kept = getattr(popen, "_fileobj2output", None)
    return sum(len([1 for chunk in chunks if chunk]) for chunks in kept.values()) if kept else 1


_CONTRACT = """
    def communicate(self, input=None, timeout=None):
        return stdout, stderr
"""

PATCH = Patch(
    __name__,
    summary="subprocess: what is exchanged with a child, and how long it takes",
    layer=Layer.TRACE,
    targets=(
        _popen.native_target(make, "communicate", (), _CONTRACT),
        _popen.green_target(make, "communicate", (), _CONTRACT),
    ),
)
