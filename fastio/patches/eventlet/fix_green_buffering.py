"""``fix_green_buffering``: outputs of a green Popen are buffered unless the caller says otherwise (eventlet #693).

The standard library's default is ``bufsize=-1``: ``stdout.read(n)`` returns n bytes unless the
output ends, and lines are cut out of a buffer. eventlet's is 0: reads come back short, and ``for
line in p.stdout`` is a system call per byte. stdin stays unbuffered as eventlet has it, so that
what is written reaches the child without a flush. A ``bufsize`` that is no number is refused, as
natively.

It is not in the default, because programs written for eventlet can see the buffer:

- ``communicate()`` after ``readline()`` or ``read(n)`` returns what is left in the pipe. What the buffer has taken
  out of it is lost, as it is natively.
- ``select()`` and other waiting for the descriptor do not know of lines that are in the buffer already. The
  program waits although it could read.
- ``read(n)`` waits for n bytes or the end; without the buffer it returns what there is.
- While one greenlet reads, another that closes the stream gets ``RuntimeError: reentrant call``; so does one that
  reads as well.

Ask for it, ``also=fix_green_buffering`` or ``FASTIO_ALSO=fix_green_buffering``, where no program does any of this.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from fastio.io import pipes
from fastio.patching.registry import Layer, Patch, Target


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
                setattr(self, name, io.BufferedReader(stream, pipes.DEFAULT_CAPACITY))

    return __init__


PATCH = Patch(
    __name__,
    summary="eventlet: Popen's outputs are buffered by default, as natively",
    layer=Layer.FIX,
    after=("fix_green_encoding",),
    targets=(Target("eventlet.green.subprocess:Popen.__init__", make),),
    default=False,
)
