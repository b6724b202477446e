"""``image_chunks``: ``chunkreadable()`` and ``chunkiter()`` of glance_store use ``store_chunk_size``.

Both read an image file for a driver, in chunks of 64 KiB unless the driver gives a size. All drivers of glance_store
give one. For drivers that do not, the setting replaces the 64 KiB. Without the setting nothing changes.
"""

from collections.abc import Callable
from typing import Any

from fastio import config, counters
from fastio.patching.registry import Layer, Patch, Target

_counts = counters.of(__name__)


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of either function."""

    def chunks(*args: Any, **kwargs: Any) -> Any:
        size = config.effective().store_chunk_size
        if size is not None and len(args) < 2 and "chunk_size" not in kwargs:
            _counts.took()
            kwargs["chunk_size"] = size
        return wrapped(*args, **kwargs)

    return chunks


PATCH = Patch(
    __name__,
    summary="glance_store's chunkreadable() and chunkiter(): store_chunk_size where the driver gives no size",
    layer=Layer.REPLACE,
    counted=False,
    after=("store_vmware",),
    targets=(
        Target(
            "glance_store.common.utils:chunkreadable",
            make,
            contract="""
                def chunkreadable(iter, chunk_size=65536):
                    chunkiter(iter, chunk_size)
            """,
        ),
        Target(
            "glance_store.common.utils:chunkiter",
            make,
            contract="""
                def chunkiter(fp, chunk_size=65536):
                    yield chunk
                    fp.read(chunk_size)
            """,
        ),
    ),
)
