"""``openstacksdk_download``: openstacksdk reads objects and images in blocks of 1 MiB.

Upstream reads an object in blocks of 1,024 bytes unless the program asks for more, and also an image for
``openstack image save``. Each of these pieces goes through requests, urllib3 and http.client. With this patch, a size
of 1,024 bytes becomes 1 MiB, the size that upstream has for images. ``stream_object()`` still gives pieces of 1,024
bytes, cut from large ones. Any other size stays. If a download breaks off, up to 1 MiB that has arrived is lost, where
upstream loses up to 1,024 bytes.
"""

from collections.abc import Callable, Iterator
from typing import Any

from fastio import counters
from fastio.config import MIB
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target

_counts = counters.of(__name__)

#: Bytes: upstream's default for objects, and that of ``openstack image save``.
STOCK = 1024


def _enlarged(size: Any) -> Any:
    """1 MiB for upstream's default; any other size is returned unchanged."""
    if size != STOCK:
        return size
    _counts.took()
    return MIB


def make_get_object(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Proxy.get_object``."""

    def get_object(
        self: Any,
        obj: Any,
        container: Any = None,
        resp_chunk_size: Any = STOCK,
        outfile: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        size = _enlarged(resp_chunk_size) if outfile else resp_chunk_size
        return wrapped(self, obj, container, size, outfile, *args, **kwargs)

    return get_object


def make_stream(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Object.stream``, whose caller sees the pieces."""

    def stream(self: Any, session: Any, error_message: Any = None, chunk_size: Any = STOCK) -> Any:
        pieces = wrapped(self, session, error_message, _enlarged(chunk_size))
        return _cut(pieces) if chunk_size == STOCK else pieces

    return stream


def _cut(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same data in pieces of upstream's size."""
    for piece in pieces:
        for start in range(0, len(piece), STOCK):
            yield piece[start : start + STOCK]


def make_download(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``DownloadMixin.download``, of images: in older releases their default is 1,024 bytes, too."""

    def download(
        self: Any, session: Any, stream: Any = False, output: Any = None, chunk_size: Any = MIB, **kwargs: Any
    ) -> Any:
        size = _enlarged(chunk_size) if output else chunk_size
        return wrapped(self, session, stream, output, size, **kwargs)

    return download


PATCH = Patch(
    __name__,
    summary="openstacksdk: objects and images are read in blocks of 1 MiB, where upstream reads 1 KiB",
    targets=(
        Target(
            "openstack.object_store.v1._proxy:Proxy.get_object",
            make_get_object,
            Uses("self, obj, container=None, resp_chunk_size=1024, outfile=None, *_", "iter_content write"),
        ),
        Target(
            "openstack.object_store.v1.obj:Object.stream",
            make_stream,
            Uses("self, session, error_message=None, chunk_size=1024", "iter_content"),
        ),
        Target(
            "openstack.image._download:DownloadMixin.download",
            make_download,
            Uses("self, session, stream=False, output=None, *_", "iter_content chunk_size"),
        ),
    ),
)
