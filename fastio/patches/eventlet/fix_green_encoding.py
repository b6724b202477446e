"""``fix_green_encoding``: eventlet's green Popen respects ``encoding=`` and ``errors=``.

Upstream wraps the pipes of a child in text mode again, and ignores both arguments: the pipes decode with the
locale's encoding, strictly.
"""

import io
from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target

_counts = counters.of(__name__)


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of the green ``Popen.__init__``."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        wrapped(self, *args, **kwargs)
        # "locale" is Python 3.10's word for no encoding given; reconfigure() there does not know it.
        encoding = None if self.encoding == "locale" else self.encoding
        if encoding or self.errors:
            for stream in (self.stdin, self.stdout, self.stderr):
                if isinstance(stream, io.TextIOWrapper):
                    _counts.took()
                    stream.reconfigure(encoding=encoding, errors=self.errors)

    return __init__


PATCH = Patch(
    __name__,
    summary="eventlet: Popen(encoding=…, errors=…) are heeded",
    changes="text of a child is decoded as encoding= and errors= say",
    targets=(Target("eventlet.green.subprocess:Popen.__init__", make, Uses("self, *_", "setattr wrapped_pipe")),),
)
