"""``glanceclient_download``: glanceclient's downloads take few wake-ups, and are fair under eventlet.

Upstream reads the body of a response through a buffer, and is woken for each piece that the server sends: with a fast
server thousands of times per GiB, under eventlet with a trip through the hub each. Here the kernel gathers half a MiB
before it wakes the reader, and the data goes from the kernel to the chunk that is returned. With TLS, which comes in
records of 16 KiB, each record goes from OpenSSL to the chunk without the layers between; see
:mod:`fastio.io.unbuffered`. Chunks are 1 MiB as upstream has them. Time-outs count as they do without it: what has
come is read after 50 ms at the latest.

Under eventlet the download yields to other greenlets after its share of ``yield_bytes``. Upstream does only when the
socket has nothing to read, which with a fast server is seldom.

What is not a plain body of known length from requests' own connection (chunked encoding, a proxy's TLS within TLS, a
mock) is read as upstream does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastio.patches import HTTP
from fastio.patching.registry import Layer, Patch, Target


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``_close_after_stream``."""
    from fastio.io import http_bodies

    def _close_after_stream(response: Any, chunk_size: int) -> Any:
        http_bodies.read_unbuffered(response)
        return wrapped(response, chunk_size)

    return _close_after_stream


PATCH = Patch(
    __name__,
    summary="glanceclient: downloads take few wake-ups, and yield to others after yield_bytes under eventlet",
    layer=Layer.REPLACE,
    targets=(Target("glanceclient.common.http:_close_after_stream", make, requires=HTTP),),
)
