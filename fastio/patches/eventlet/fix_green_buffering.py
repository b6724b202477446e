"""``fix_green_buffering``: outputs of a green Popen are buffered unless the caller says otherwise (eventlet #693).

The default of the standard library is ``bufsize=-1``: ``stdout.read(n)`` returns n bytes unless the output ends, and
lines are read through a buffer. The default of eventlet is 0: reads may return less, and ``for line in p.stdout``
makes a system call for each byte. With this patch, stdin stays unbuffered as in eventlet, so that data reaches the
child without a flush. A ``bufsize`` that is not a number is refused, as it is natively.

This patch is not in the default, because programs written for eventlet can notice the buffer:

- After ``readline()`` or ``read(n)``, ``communicate()`` returns what is left in the pipe. Data that the buffer has
  already read is lost, as it is natively.
- ``select()``, and anything else that waits for the descriptor, does not know of lines that are already in the buffer.
  The program waits although it could read.
- ``read(n)`` waits for n bytes or the end. Without the buffer it returns what there is.
- While one greenlet reads, another greenlet that closes the stream gets ``RuntimeError: reentrant call``. So does
  another greenlet that reads.

If no program does any of this, ask for the patch: ``also=fix_green_buffering`` or ``FASTIO_ALSO=fix_green_buffering``.
"""

import io
from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.io import pipes
from fastio.patching.registry import Layer, Patch, Target

_counts = counters.of(__name__)


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of the green ``Popen.__init__``."""
    from eventlet.greenio.py3 import GreenFileIO

    def __init__(self: Any, args: Any, *rest: Any, **kwargs: Any) -> None:
        given = rest[0] if rest else kwargs.get("bufsize")
        if given is not None and not isinstance(given, int):
            raise TypeError("bufsize must be an integer")
        wrapped(self, args, *rest, **kwargs)
        if rest or "bufsize" in kwargs:
            return
        for name in ("stdout", "stderr"):
            stream = getattr(self, name)
            if type(stream) is GreenFileIO:
                _counts.took()
                setattr(self, name, io.BufferedReader(stream, pipes.DEFAULT_CAPACITY))

    return __init__


PATCH = Patch(
    __name__,
    summary="eventlet: Popen's outputs are buffered by default, as natively",
    changes="outputs of a child are buffered, so a program sees them in other pieces",
    layer=Layer.FIX,
    counted=False,
    after=("fix_green_encoding",),
    targets=(
        Target(
            "eventlet.green.subprocess:Popen.__init__",
            make,
            contract="""
                def __init__(self, args, bufsize=0, *_):
                    greenio.GreenPipe(pipe, mode, bufsize)
                    setattr(self, attr, wrapped_pipe)
            """,
        ),
    ),
    default=False,
)
