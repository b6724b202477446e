"""``glance_uploads``: glance under uWSGI reads chunked uploads without repeated copies.

Upstream (glance 32 and 33) appends each chunk of the request to a bytes object until it has as much as was asked for.
This copies the whole object each time. A read of 1 MiB copies some 8 MiB with chunks of 64 KiB, as glanceclient sends
them, and 64 MiB with chunks of 8 KiB. With this patch, the chunks are joined once. The results of reads, and the data
kept for the next one, stay the same, even if uWSGI raises an exception in between; the log then names the option of
uWSGI that the upload was ended by. Releases before 32 do not append.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

from fastio import counters, log
from fastio.config import MIB
from fastio.patches.glance import _uwsgi
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target

_counts = counters.of(__name__)

MODULE = "glance.common.wsgi"


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The replacement of ``_UWSGIChunkFile.read``."""
    find_uwsgi = _finder(sys.modules[MODULE])

    def read(self: Any, length: int | None = None) -> bytes:
        if length == 0:
            return b""
        if length is None or length < 0:
            # As upstream, which does not read to the end then.
            length = MIB
        uwsgi = find_uwsgi()
        # One piece alone is not copied at all.
        pieces = [self._buffer] if self._buffer else []
        size = len(self._buffer)
        begin = 0.0
        try:
            while size < length:
                begin = time.monotonic()
                data = uwsgi.chunked_read()
                if not data:
                    break
                pieces.append(data)
                size += len(data)
        except BaseException as error:
            self._buffer = b"".join(pieces)
            if isinstance(error, OSError):
                log.log(log.ERROR, "fastio: an upload has failed: %s", _uwsgi.why_no_chunk(time.monotonic() - begin))
            raise
        self._buffer = b""
        if size > length:
            last = pieces[-1]
            end = len(last) - (size - length)
            pieces[-1], self._buffer = last[:end], last[end:]
        data = b"".join(pieces)
        _counts.calls += 1
        _counts.bytes += len(data)
        return data

    return read


def _finder(wsgi: Any) -> Callable[[], Any]:
    """How glance finds the module ``uwsgi``: for each read from 33 on, and once before."""
    if hasattr(wsgi, "_get_uwsgi"):
        return lambda: wsgi._get_uwsgi()
    return lambda: wsgi.uwsgi


PATCH = Patch(
    __name__,
    summary="glance under uWSGI: the chunks of a chunked upload are joined once, not copied for each that comes",
    targets=(
        Target(
            "glance.common.wsgi:_UWSGIChunkFile.read",
            make,
            relies_on={"__init__": Uses("self", "_buffer")},
        ),
    ),
    unused=lambda: "" if _uwsgi.serves() else "the server is not uWSGI",
    requires=("glance >= 32.0, < 34",),
    # They return what the chunks hold, joined once.
    not_needed_in=("glance < 32",),
)
