"""``store_http``: glance_store's http driver reads images in chunks of the configured size.

Upstream reads blocks of 4 MiB, a value that it inherits and that no option changes. With this patch it is a setting,
by default 1 MiB. The kernel gathers large parts of a chunk before it wakes the reader. Upstream is woken for each
piece that the server sends. (This does not apply to TLS; see :mod:`fastio.io.lowwater`.)
"""

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.patches.glance_store import _stores
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target

_counts = counters.of(__name__)

#: Bytes. From a sweep of 64 KiB to 8 MiB.
READ_CHUNK = 1 << 20


def make_iterator(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``http_response_iterator``."""
    from fastio.io import http_bodies

    def http_response_iterator(conn: Any, response: Any, size: int) -> Any:
        return wrapped(conn, http_bodies.Body(response, counts=_counts), size)

    return http_response_iterator


PATCH = Patch(
    __name__,
    summary="glance_store's http: the chunk size is a setting, and a chunk takes few wake-ups",
    targets=(
        *_stores.chunk_sizes(
            "http",
            READ_CHUNKSIZE=_stores.Size(
                READ_CHUNK,
                4 << 20,
                {"get": Uses("self, *_", "http_response_iterator READ_CHUNKSIZE")},
            ),
        ),
        Target(
            "glance_store._drivers.http:http_response_iterator",
            make_iterator,
            Uses("conn, response, size", "yield read"),
        ),
    ),
)
