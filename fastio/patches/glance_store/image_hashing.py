"""``image_hashing``: glance_store's drivers hash an image in parallel with writing it.

``add()`` computes md5 and the multihash one after the other, in the thread that reads and writes. The hashes, not the
store, limit the speed of an upload. All drivers get their hash objects from ``glance_store.common.utils.get_hasher``.
With this patch, the ``update()`` of these objects hands the data to a small pool of native threads. md5, the multihash
and the transfer then run in parallel; see :mod:`fastio.io.hashing`. Results, exceptions and attributes are those of
hashlib.

Each upload has at most 4 MiB (or one chunk, if that is larger) in memory beyond what upstream holds, and less if there
are many uploads. Images below 256 KiB are hashed as before, and no thread is started for them. Under eventlet,
``update()`` and ``hexdigest()`` let other greenlets run while they wait for a thread. A fork waits until the data that
was handed over is hashed (a few milliseconds for each upload). The child can go on with a hash that its parent
began.
"""

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.io import hashing_once
from fastio.io.hashing import pool
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target

_counts = counters.of(__name__)


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``get_hasher``."""

    def get_hasher(*args: Any, **kwargs: Any) -> Any:
        _counts.took()
        return hashing_once.in_background(wrapped(*args, **kwargs), pool, _counts)

    return get_hasher


PATCH = Patch(
    __name__,
    summary="glance_store's add(): md5 and the multihash in native threads, next to each other and to the write",
    targets=(
        Target(
            "glance_store.common.utils:get_hasher",
            make,
            Uses("*_", "hashlib new"),
        ),
    ),
)
