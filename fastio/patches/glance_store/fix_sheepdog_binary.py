"""``fix_sheepdog_binary``: glance_store's sheepdog driver (up to 1.0.1) reads bytes on Python 3.

Upstream runs ``collie vdi read`` through ``processutils.execute()`` without ``binary=True``, and so gets text. In a
UTF-8 locale, each valid sequence of several bytes becomes one character. The driver then takes characters for bytes,
and asks for the next ones at the wrong offset. So ``get()`` returns ``str`` with the wrong content, in more and ever
smaller pieces, without an exception.

Only ``read`` becomes binary: ``get_size()`` splits the output of ``list`` as text.
"""

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.patches.glance_store import _stores
from fastio.patching.registry import Layer, Patch, Target

_counts = counters.of(__name__)


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``SheepdogImage._run_command``; for ``read`` it does what upstream does, but for the text."""
    module = hook.original.__globals__

    def _run_command(self: Any, command: str, data: Any, *params: Any) -> Any:
        if command != "read":
            return wrapped(self, command, data, *params)
        _counts.took()
        cmd = ["collie", "vdi", "read", "-a", self.addr, "-p", self.port, self.name, *params]
        processutils = module["processutils"]
        try:
            return processutils.execute(*cmd, process_input=data, binary=True)[0]
        except processutils.ProcessExecutionError as exc:
            module["LOG"].error(exc)
            raise module["glance_store"].BackendException(exc)  # noqa: B904 - as upstream

    return _run_command


PATCH = Patch(
    __name__,
    summary="glance_store's sheepdog (up to 1.0.1): images are read as bytes on Python 3, and not as text",
    changes="images are read as bytes, and not as text",
    layer=Layer.FIX,
    counted=False,
    targets=(
        Target(
            "glance_store._drivers.sheepdog:SheepdogImage._run_command",
            make,
            ("read",),
            """
            def read(self, offset, count):
                return self._run_command("read", None, str(offset), str(count))
            """,
        ),
    ),
    requires=(_stores.WITH_SHEEPDOG,),
)
