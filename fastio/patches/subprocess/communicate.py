"""``communicate``: ``subprocess.Popen._communicate`` on native threads (POSIX).

Upstream reads blocks of 32 KiB from a pipe of 64 KiB into a list, and joins the list at the end. It writes blocks of
4 KiB. With this patch, the pipe is made larger once the child has much to say. Everything that the pipe holds is read
at once, into one growing result. Input is written in slices as large as the pipe can take. Upstream's code handles
input that cannot be sliced by bytes, and everything in a thread that has a hub.
"""

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.concurrency import current, waiting
from fastio.concurrency.pace import Pace
from fastio.patches.subprocess import _popen
from fastio.patching.known_code import KNOWN
from fastio.patching.registry import Patch

_counts = counters.of(__name__)


#: How the Popen of native threads waits.
MODE = _popen.Mode(waiting.NATIVE, lambda settings: Pace(fixed=settings.chunk_size), current.may_block)


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The replacement of ``Popen._communicate``."""
    return _popen.replacement(wrapped, hook, MODE, _counts)


PATCH = Patch(
    __name__,
    summary="Popen.communicate() on native threads: larger pipe, large reads into one result, large writes",
    targets=(_popen.native_target(make, "_communicate", KNOWN, relies_on=_popen.RELIES_ON),),
)
