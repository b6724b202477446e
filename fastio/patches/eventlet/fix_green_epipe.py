"""``fix_green_epipe``: eventlet's green ``os.write`` raises BrokenPipeError instead of looping for ever.

Upstream (seen in eventlet 0.35 to 0.41) treats EPIPE as "try again". If a child exits without reading all of its
input, ``communicate(input)`` never returns and keeps a processor busy. Natively, ``os.write`` raises BrokenPipeError.
With this patch, the green one raises it, too, as it did up to eventlet 0.34.
"""

import errno
import os
from collections.abc import Callable
from posix import write as _write
from stat import S_ISREG
from typing import Any

from fastio import counters
from fastio.patching.registry import Patch, Target, reached

_counts = counters.of(__name__)

#: The first releases that wait before they write.
_WAITS_FIRST = ("0.37",)


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The replacement of ``eventlet.green.os.write``, in the order of the release that is installed."""
    from eventlet import hubs

    waits_first = reached(hook.release, _WAITS_FIRST)

    def write(fd: int, st: Any) -> int:
        while True:
            # A regular file is always ready, and epoll refuses it.
            if waits_first and not S_ISREG(os.stat(fd).st_mode):
                try:
                    hubs.trampoline(fd, write=True)
                except hubs.IOClosed:
                    return 0
            try:
                return _write(fd, st)
            except OSError as error:
                if error.errno != errno.EAGAIN:
                    if error.errno == errno.EPIPE:
                        _counts.took()
                    raise
            if not waits_first:
                hubs.trampoline(fd, write=True)

    return write


PATCH = Patch(
    __name__,
    summary="eventlet: os.write() to a pipe without readers raises BrokenPipeError instead of spinning for ever",
    changes="a write to a pipe without readers raises BrokenPipeError instead of spinning for ever",
    targets=(Target("eventlet.green.os:write", make, also=("os:write",)),),
)
