"""``communicate``: ``subprocess.Popen._communicate`` on native threads (POSIX).

Upstream reads 32 KiB at a time into a list that is joined at the end, from a pipe of 64 KiB, and
writes 4 KiB at a time. Here the pipe is made larger once the child shows that it has much to say,
everything that a pipe holds is read at once into one growing result, and input goes out in slices
as large as the pipe takes. Input that can not be sliced by bytes is left to upstream's code, and so
is everything in a thread that has a hub.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastio.concurrency import current, waiting
from fastio.concurrency.pace import Pace
from fastio.patches.subprocess import _popen
from fastio.patching.registry import Layer, Patch


def mode(hook: Any) -> _popen.Mode:
    """How the Popen of native threads waits, with the selector class that its module chose."""
    namespace = hook.original.__globals__
    waiter = waiting.NativeWaiter(lambda: namespace["_PopenSelector"])
    return _popen.Mode(waiter, lambda settings: Pace(fixed=settings.chunk_size), current.may_block)


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The replacement of ``Popen._communicate``."""
    return _popen.replacement(wrapped, hook, mode(hook))


PATCH = Patch(
    __name__,
    summary="Popen.communicate() on native threads: larger pipe, large reads into one result, large writes",
    layer=Layer.REPLACE,
    targets=(_popen.native_target(make),),
)
