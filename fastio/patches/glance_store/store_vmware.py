"""``store_vmware``: glance_store's vmware driver reads and writes in chunks of the configured size.

Upstream downloads in chunks of 4 MiB. Its ``WRITE_CHUNKSIZE`` of 1 MiB has no effect: it uploads an image of known
size in the 16 KiB that urllib3 2 uses for every file-like body (8 KiB with urllib3 1.26), and an image of unknown size
in 64 KiB. With this patch, both sizes are settings, by default 1 MiB, and 256 KiB for an upload of unknown size.
``WRITE_CHUNKSIZE`` takes effect, because the driver's sessions get an adapter with larger blocks. As for swift, an
image that comes slowly is sent as it comes.
"""

import sys
from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.patches import requests
from fastio.patches.glance_store import _stores
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target

_counts = counters.of(__name__)

_MODULE = "glance_store._drivers.vmware_datastore"

#: Bytes. As for swift, which reads and writes in the same way.
CHUNK = 1 << 20
#: Bytes of a chunk of upstream's, of an image of unknown size.
STOCK = 64 << 10


def make_new_session(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``new_session``."""
    from fastio.io import http_bodies

    def new_session(*args: Any, **kwargs: Any) -> Any:
        session = wrapped(*args, **kwargs)
        _counts.took()
        http_bodies.enlarge_blocks(session, sys.modules[_MODULE].Store.WRITE_CHUNKSIZE)
        return session

    return new_session


def make_chunkiter(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``glance_store.common.utils.chunkiter``, by which an image of unknown size is read."""
    from fastio.io import uploads

    def chunkiter(fp: Any, *args: Any, **kwargs: Any) -> Any:
        driver = sys.modules.get(_MODULE)
        if driver is not None and type(fp) is driver._Reader:
            _counts.took()
            # As for swift: 1 MiB in memory that is new each time takes more of the system's time, and is no faster.
            return wrapped(uploads.Gathered(fp, STOCK), _stores.chunk_size("vmware", uploads.LARGEST))
        return wrapped(fp, *args, **kwargs)

    return chunkiter


PATCH = Patch(
    __name__,
    summary="glance_store's vmware: chunk sizes are settings, and uploads go in larger blocks",
    targets=(
        *_stores.chunk_sizes(
            "vmware",
            READ_CHUNKSIZE=_stores.Size(
                CHUNK,
                4 << 20,
                {"get": Uses("self, *_", "http_response_iterator READ_CHUNKSIZE")},
            ),
            WRITE_CHUNKSIZE=_stores.Size(
                CHUNK,
                1 << 20,
                {"add": Uses("self, *_", "_Reader chunkiter new_session")},
            ),
        ),
        Target(
            f"{_MODULE}:new_session",
            make_new_session,
            Uses("*_", "requests Session"),
            requires=requests.WITH_URLLIB3,
        ),
        Target(
            "glance_store.common.utils:chunkiter",
            make_chunkiter,
            Uses("fp, chunk_size=65536", "yield read"),
        ),
    ),
)
