"""``glance_cache``: the image cache is read in large chunks, and is fair under eventlet.

Upstream reads a cached image in chunks of 64 KiB, from the first to the last, and lets no other request run. With this
patch, a chunk is ``chunk_size``, and under eventlet a request yields after its share of ``yield_bytes``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastio import config, counters
from fastio.io import image_files, paced
from fastio.patching import namespaces
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target
from fastio.proxy import Proxy

_counts = counters.of(__name__)


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """``CacheFilter.get_from_cache`` with large chunks of a file that leaves the hub to others."""
    return namespaces.replaced(wrapped, utils=_Utils)


class _Utils(Proxy):
    """``glance.common.utils`` with another default of ``chunkiter``."""

    def chunkiter(self, file: Any) -> Any:
        _counts.took()
        return paced.wrap(self.__wrapped__.chunkiter(image_files.wrap(file, _counts), config.effective().chunk_size))


PATCH = Patch(
    __name__,
    summary="glance's image cache: large chunks, fair under eventlet",
    targets=(
        Target(
            "glance.api.middleware.cache:CacheFilter.get_from_cache",
            make,
            Uses("self, image_id", "yield utils chunkiter"),
        ),
    ),
)
