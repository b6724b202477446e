"""``store_s3``: glance_store's s3 driver reads and writes in chunks of the configured size.

Upstream downloads blocks of 64 KiB and uploads parts of 5 MiB. No option changes this; here both are settings.
By default a download comes in chunks of 1 MiB, and a part of a multipart upload is read at once. The pieces of a part
are copied once. Upstream copies the whole part again for each piece: 80 times for pieces of 64 KiB in a part of 10
MiB. This happens if an image file returns less than it is asked for.

A multipart upload reads at most one part more than ``s3_store_thread_pools`` can send, as glance_store up to 4.9 did.
Since 4.10, an image that is read faster than it is sent is held in memory as a whole.
"""

import io
import math
import sys
import threading
from collections.abc import Callable
from typing import Any

from fastio import config, counters
from fastio.concurrency import current
from fastio.patches.glance_store import _stores
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target
from fastio.proxy import Proxy

_counts = counters.of(__name__)

_MODULE = "glance_store._drivers.s3"

#: Bytes. From a sweep of 64 KiB to 8 MiB: CPU time per byte falls up to here, and hardly beyond.
READ_CHUNK = 1 << 20


class PartReader:
    """An image file that is read as far as the next part of the upload needs, and no further than upstream would.

    :param part: bytes of a part; only the last one may have less
    :param most: most bytes to ask ``image_file`` for in one read
    :param begin: called before the first byte for a part is read
    """

    def __init__(self, image_file: Any, part: int, most: int, begin: Callable[[], Any]) -> None:
        self._image_file = image_file
        self._part = part
        self._most = most
        self._begin = begin
        self._total = 0
        self._ended = False

    def read(self, size: int) -> bytes:
        """Return the missing bytes of the next part; nothing at the end.

        Upstream asks for chunks of ``size``, so what it has read is a multiple of that, and where parts are not, the
        last chunk reaches into the next part. That shows when an image is larger than announced.
        """
        if self._ended:
            return b""
        self._begin()
        part_end = (self._total // self._part + 1) * self._part
        chunk = min(size, self._part)
        chunk_end = -(-part_end // chunk) * chunk
        first, end = self._next(part_end, chunk_end)
        if end:
            return first
        # BytesIO grows in place and hands its bytes over: they are in memory once.
        whole = io.BytesIO()
        whole.write(first)
        while not end:
            data, end = self._next(part_end, chunk_end)
            whole.write(data)
        return whole.getvalue()

    def _next(self, part_end: int, chunk_end: int) -> tuple[bytes, bool]:
        """Some bytes, and whether they are the last ones for now."""
        asked = min(self._most, chunk_end - self._total)
        data = self._image_file.read(asked)
        if not data:
            self._ended = True
            return b"", True
        # Bytes stay unchanged; anything else gives upstream's result, a copy or TypeError.
        data = b"" + data
        self._total += len(data)
        # A read that gives less than it was asked for is the end of upstream's chunk as well.
        return data, self._total >= (chunk_end if len(data) == asked else part_end)


def _most(part: int) -> int:
    """Bytes of one read of the image file; no more than may hold the hub where there is one."""
    return _stores.chunk_size("s3", config.effective().yield_bytes if current.is_green() else part)


class _Client(Proxy):
    """The boto3 client of one upload, which reports when a part is no longer needed."""

    def __init__(self, client: Any, done: Callable[[], Any]) -> None:
        super().__init__(client)
        self._done = done

    def upload_part(self, **kwargs: Any) -> Any:
        try:
            return self.__wrapped__.upload_part(**kwargs)
        finally:
            self._done()


def make_add_multipart(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Store._add_multipart``."""

    def _add_multipart(self: Any, s3_client: Any, image_file: Any, image_size: int, *args: Any, **kwargs: Any) -> Any:
        if hasattr(image_file, "read"):
            most_parts = sys.modules[_MODULE].MAX_PART_NUM  # type: ignore[attr-defined]
            part = max(self.s3_store_large_object_chunk_size, math.ceil(image_size / most_parts))
            # Those that are being sent, and the one that is read meanwhile. Taken from the module each time: under
            # eventlet it has to be a green one, and upstream's threads are green as well.
            free = threading.Semaphore(self.s3_store_thread_pools + 1)
            _counts.took()
            image_file = PartReader(image_file, part, _most(part), free.acquire)
            s3_client = _Client(s3_client, free.release)
        return wrapped(self, s3_client, image_file, image_size, *args, **kwargs)

    return _add_multipart


PATCH = Patch(
    __name__,
    summary="glance_store's s3: chunk sizes are settings, parts are read at once and held in bounded memory",
    targets=(
        *_stores.chunk_sizes(
            "s3",
            READ_CHUNKSIZE=_stores.Size(
                READ_CHUNK,
                64 << 10,
                {"get": Uses("self, *_", "READ_CHUNKSIZE chunkiter")},
            ),
            WRITE_CHUNKSIZE=_stores.Size(
                5 << 20,
                5 << 20,
                dict.fromkeys(("_add_singlepart", "_add_multipart"), Uses("self, *_", "chunkreadable WRITE_CHUNKSIZE")),
            ),
        ),
        Target(f"{_MODULE}:Store._add_multipart", make_add_multipart),
    ),
)
