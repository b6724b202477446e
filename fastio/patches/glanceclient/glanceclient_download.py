"""``glanceclient_download``: glanceclient's downloads need few wake-ups, and are fair under eventlet.

Upstream reads the body of a response through a buffer, and is woken for each piece that the server sends. With a fast
server this happens thousands of times per GiB, under eventlet each time with a trip through the hub. With this patch,
the kernel gathers half a MiB before it wakes the reader, and the data goes from the kernel directly to the chunk that
is returned. TLS sends records of 16 KiB. Each record goes from OpenSSL directly to the chunk; see
:mod:`fastio.io.unbuffered`. Chunks are 1 MiB, as they are upstream. Time-outs count as before: data that has arrived
is read after 50 ms at the latest.

Under eventlet the download yields after its share of ``yield_bytes``. Upstream yields only if the socket has nothing
to read, and that is rare with a fast server.

Upstream's code reads everything but a plain body of known length from requests' own connection. Examples are chunked
encoding, a proxy's TLS within TLS, and a mock.
"""

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.patches import requests
from fastio.patching.registry import Layer, Patch, Target

_counts = counters.of(__name__)


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``_close_after_stream``."""
    from fastio.io import http_bodies

    def _close_after_stream(response: Any, chunk_size: int) -> Any:
        http_bodies.read_unbuffered(response, _counts)
        return wrapped(response, chunk_size)

    return _close_after_stream


PATCH = Patch(
    __name__,
    summary="glanceclient: downloads take few wake-ups, and yield to others after yield_bytes under eventlet",
    layer=Layer.REPLACE,
    counted=False,
    targets=(
        Target(
            "glanceclient.common.http:_close_after_stream",
            make,
            contract="""
                def _close_after_stream(response, chunk_size):
                    yield chunk
                    response.iter_content(chunk_size=chunk_size)
            """,
            requires=requests.WITH_URLLIB3,
        ),
    ),
)
