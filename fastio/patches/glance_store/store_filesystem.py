"""``store_filesystem``: glance_store's filesystem driver reads and writes in large chunks and does not block the hub.

``store_chunk_sizes`` sets the chunk of reads and writes, or ``filesystem_store_chunk_size`` if the operator has set
it. For eventlet, a regular file is always ready: upstream's reads and writes block the hub as long as the disk or
the file server takes. With this patch, a native thread reads what is not in the page cache, and writes everything. If
there are many concurrent transfers, each reads its share of ``yield_bytes``.

With ``filesystem_thin_provisioning``, holes are found in steps of 64 KiB (upstream's default chunk), or of the chunk
if that is smaller. They are found by comparing memory instead of looking at each byte.
"""

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.concurrency import current
from fastio.config import MIB
from fastio.io import image_files, scratch, sparse
from fastio.io.image_files import SMALL
from fastio.patches.glance_store import _stores
from fastio.patching import namespaces
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target

_counts = counters.of(__name__)

#: Bytes of one read or write: the best of a sweep.
CHUNK = MIB
#: Twice as many bytes have the chunks of concurrent reads, which take as long again where each is new memory.
KEPT = 16 * MIB


def make_init(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """``ChunkedFile.__init__`` with a file that leaves the hub to others."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        wrapped(self, *args, **kwargs)
        scratch.keep_freed(KEPT)
        self.fp = image_files.wrap(self.fp, _counts, whole=True)

    return __init__


def make_add(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """``Store.add`` with a file that leaves the hub to others, and that has small holes."""
    thick = namespaces.replaced(wrapped, open=_opens(_wrap))
    thin = namespaces.replaced(
        wrapped, open=_opens(lambda file: image_files.Thin(_wrap(file))), any=lambda _: sparse.any_set
    )

    def add(self: Any, image_id: Any, image_file: Any, *args: Any, **kwargs: Any) -> Any:
        if self.thin_provisioning:
            call = thin
        elif not current.is_green() or _stores.is_at_most(_stores.size_told(args, kwargs), SMALL):
            # It would be written by the file itself.
            call = wrapped
        else:
            call = thick
        return call(self, image_id, image_file, *args, **kwargs)

    return add


def _wrap(file: Any) -> Any:
    return image_files.wrap(file, _counts)


def _opens(wrap: Callable[[Any], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the replacement of ``open``: an image is written as bytes, and other files are left to upstream."""
    return lambda open: (
        lambda path, mode="r", *args, **kwargs: (wrap if mode == "wb" else lambda file: file)(
            open(path, mode, *args, **kwargs)
        )
    )


_STORE = _stores.CLASSES["filesystem"]

PATCH = Patch(
    __name__,
    summary="glance_store's filesystem: chunk size, file reads and writes that leave the hub to others",
    targets=(
        Target(f"{_STORE}.configure_add", _stores.make_configure_add, _stores.CONFIGURE_ADD),
        *_stores.chunk_sizes(
            "filesystem",
            _stores.Option("filesystem_store_chunk_size"),
            READ_CHUNKSIZE=_stores.Size(
                CHUNK,
                4 * MIB,
                {"get": Uses("self, *_", "ChunkedFile chunk_size READ_CHUNKSIZE")},
            ),
            WRITE_CHUNKSIZE=_stores.Size(
                CHUNK,
                4 * MIB,
                {"add": Uses("self, *_", "chunkreadable WRITE_CHUNKSIZE")},
            ),
        ),
        Target(
            "glance_store._drivers.filesystem:ChunkedFile.__init__",
            make_init,
            Uses("self, *_", "fp open filepath"),
            {"__iter__": Uses("self", "yield fp read"), "close": Uses("self", "fp close")},
        ),
        Target(
            f"{_STORE}.add",
            make_add,
            Uses("self, image_id, image_file, *_", "open any truncate seek write"),
        ),
    ),
)
