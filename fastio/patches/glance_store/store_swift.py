"""``store_swift``: glance_store's swift driver reads and writes in chunks of the configured size.

Upstream has several sizes, and none of them can be configured. It downloads in chunks of 64 KiB. It uploads an image
of known size in the 16 KiB that urllib3 2 uses for every file-like body (8 KiB with urllib3 1.26), and an image of
unknown size in the 64 KiB of ``swiftclient``. It buffers segments (``swift_buffer_on_upload``) in 64 KiB. With this
patch, the setting applies to all of them. The default is 1 MiB, and 256 KiB for an upload of unknown size. For uploads,
the sessions of swiftclient's connections get an adapter with larger blocks. botocore has such blocks, too. The kernel
gathers large parts of a chunk before it wakes the reader of a download. Upstream is woken for each piece that the
server sends. (This does not apply to TLS; see :mod:`fastio.io.lowwater`.)

An image that comes slowly is sent as it comes: a block ends with the first piece that had to be waited for
(:class:`fastio.io.uploads.Gathered`). A connection with a time-out, which is for each block, has upstream's sizes.

The changes to swiftclient apply to everything in the process that uses it.
"""

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.patches import requests
from fastio.patches.glance_store import _stores
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target

_counts = counters.of(__name__)

#: Bytes. From a sweep of 64 KiB to 8 MiB.
CHUNK = 1 << 20
#: Bytes of a chunk of upstream's, of an object of unknown size.
STOCK = 64 << 10


def _chunk() -> int:
    return _stores.chunk_size("swift", CHUNK)


def make_connection(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``HTTPConnection.__init__``."""
    from fastio.io import http_bodies

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        wrapped(self, *args, **kwargs)
        http_bodies.enlarge_blocks(self.request_session, _chunk())

    return __init__


def make_getresponse(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``HTTPConnection.getresponse``."""
    from fastio.io import http_bodies

    def getresponse(self: Any) -> Any:
        response = wrapped(self)
        # As swiftclient itself does with its own read().
        response.read = http_bodies.Body(response.raw, response.read, _counts).read
        return response

    return getresponse


def make_put_object(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Connection.put_object``."""
    from fastio.io import uploads

    def put_object(
        self: Any,
        container: Any,
        obj: Any,
        contents: Any,
        content_length: Any = None,
        etag: Any = None,
        chunk_size: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        # swiftclient warns of a chunk size for what it does not read. A time-out is for each chunk.
        if chunk_size is None and hasattr(contents, "read") and not getattr(self, "timeout", None):
            _counts.took()
            # It is put together from what was read, and once more with its length: as 1 MiB in memory that is new each
            # time, which takes twice the system's time and is no faster.
            chunk_size = _stores.chunk_size("swift", uploads.LARGEST)
            if content_length is None and not (uploads.is_at_hand(contents) or hasattr(contents, "reset")):
                contents = uploads.Gathered(contents, STOCK)
        return wrapped(self, container, obj, contents, content_length, etag, chunk_size, *args, **kwargs)

    return put_object


class SegmentFile:
    """An image file that gives more in one read than it is asked for, within its segment.

    :param left: bytes of the segment
    """

    def __init__(self, image_file: Any, left: int) -> None:
        self._image_file = image_file
        self._left = left

    def read(self, size: int) -> bytes:
        data = self._image_file.read(min(_chunk(), self._left))
        self._left -= len(data)
        return data


def make_buffer(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``BufferedReader._buffer``, which reads until there is nothing, but asks for READ_SIZE at most."""

    def _buffer(self: Any) -> None:
        image_file = self.fd
        self.fd = SegmentFile(image_file, self.total)
        try:
            wrapped(self)
        finally:
            self.fd = image_file

    return _buffer


PATCH = Patch(
    __name__,
    summary="glance_store's swift: chunk sizes are settings, uploads go in larger blocks, downloads take few wake-ups",
    targets=(
        *_stores.chunk_sizes(
            "swift",
            CHUNKSIZE=_stores.Size(
                CHUNK,
                64 << 10,
                {"_get_object": Uses("self, *_", "get_object resp_chunk_size CHUNKSIZE")},
            ),
        ),
        # It has to be known: it gets more from a file than it asks for.
        Target("glance_store._drivers.swift.buffered:BufferedReader._buffer", make_buffer),
        Target(
            "swiftclient.client:HTTPConnection.__init__",
            make_connection,
            Uses("self, *_", "request_session"),
            requires=requests.WITH_URLLIB3,
        ),
        Target(
            "swiftclient.client:HTTPConnection.getresponse",
            make_getresponse,
            Uses("self", "resp releasing_read raw read"),
            requires=requests.WITH_URLLIB3,
        ),
        Target(
            "swiftclient.client:Connection.put_object",
            make_put_object,
            Uses(
                "self, container, obj, contents, content_length=None, etag=None, chunk_size=None, *_",
                "_retry chunk_size",
            ),
        ),
    ),
)
