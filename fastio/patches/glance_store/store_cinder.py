"""``store_cinder``: glance_store's cinder driver reads and writes in large chunks and does not block the hub.

``store_chunk_sizes`` sets the chunk of reads and writes. glance_store has no option for it. For eventlet, a block
device is always ready: upstream's reads and writes block the hub as long as the volume's backend takes, and that is
mostly on the other side of a network. With this patch, a native thread reads what is not in the page cache, and writes
everything.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from fastio import counters
from fastio.config import MIB
from fastio.io import image_files
from fastio.patches.glance_store import _stores
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target

_counts = counters.of(__name__)

#: Bytes of one read or write, of which the driver has two in memory.
CHUNK = MIB


def make_open(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """``Store._open_cinder_volume`` (what is inside its ``contextmanager``) that yields a file which leaves the hub."""
    opened = contextlib.contextmanager(wrapped)

    def _open_cinder_volume(self: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        with opened(self, *args, **kwargs) as file:
            yield image_files.wrap(file, _counts)

    return _open_cinder_volume


_OPEN = f"{_stores.CLASSES['cinder']}._open_cinder_volume"

PATCH = Patch(
    __name__,
    summary="glance_store's cinder: chunk size, device reads and writes that leave the hub to others",
    targets=(
        *_stores.chunk_sizes(
            "cinder",
            READ_CHUNKSIZE=_stores.Size(
                CHUNK,
                4 * MIB,
                {
                    "get": Uses("self, *_", "_cinder_volume_data_iterator READ_CHUNKSIZE"),
                    "_cinder_volume_data_iterator": Uses("self, *_", "yield chunk_size READ_CHUNKSIZE read"),
                },
            ),
            WRITE_CHUNKSIZE=_stores.Size(
                CHUNK,
                4 * MIB,
                {"add": Uses("self, image_id, image_file, image_size, *_")},
            ),
        ),
        Target(
            _OPEN,
            make_open,
            Uses("self, *_", "yield"),
            code=_stores.code_of(_OPEN),
        ),
    ),
)
