"""``openstacksdk_download``: openstacksdk reads objects and images in large chunks.

Upstream reads 1,024 bytes at a time of an object, and as many of an image if ``openstack image save`` asks for it. Each
of these pieces goes through requests, urllib3 and http.client. With this patch, a piece that goes to a file is up to
1 MiB, and the data goes from the kernel directly to it; see :mod:`fastio.io.unbuffered`. ``stream_object()`` still
gives pieces of the size that its caller asks for. They are cut from large ones.

Time-outs count as before, and data that has arrived is handed on after 50 ms at the latest. If a download breaks off,
the file has the same bytes as with upstream's code. Under eventlet the download yields after its share of
``yield_bytes``.

Upstream's code reads what is not streamed, a body below 256 KiB, a compressed one, one of unknown length, and one that
does not come from requests' own connection, such as a mock's.
"""

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.patches import requests
from fastio.patches.requests._downloads import Caller
from fastio.patching.registry import Layer, Patch, Target

_counts = counters.of(__name__)


def make_get_object(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Proxy.get_object``."""

    def get_object(
        self: Any,
        obj: Any,
        container: Any = None,
        resp_chunk_size: Any = 1024,
        outfile: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        proxy = Caller(self, "get", _counts, joined=True) if outfile else self
        return wrapped(proxy, obj, container, resp_chunk_size, outfile, *args, **kwargs)

    return get_object


def make_stream(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Object.stream``, whose caller sees the pieces."""

    def stream(self: Any, *args: Any, **kwargs: Any) -> Any:
        return wrapped(Caller(self, "_download", _counts, joined=False), *args, **kwargs)

    return stream


def make_download(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``DownloadMixin.download``, of images."""

    def download(self: Any, session: Any, stream: Any = False, output: Any = None, *args: Any, **kwargs: Any) -> Any:
        caller = Caller(session, "get", _counts, joined=True) if output else session
        return wrapped(self, caller, stream, output, *args, **kwargs)

    return download


PATCH = Patch(
    __name__,
    summary="openstacksdk: objects and images are read in large chunks, whatever the size of the pieces",
    layer=Layer.REPLACE,
    counted=False,
    targets=(
        Target(
            "openstack.object_store.v1._proxy:Proxy.get_object",
            make_get_object,
            contract="""
                def get_object(self, obj, container=None, resp_chunk_size=1024, outfile=None, *_):
                    response = self.get(request.url, headers=request.headers, stream=get_stream)
                    response.iter_content(resp_chunk_size, decode_unicode=False)
                    outfile_handle.write(chunk)
            """,
            requires=requests.WITH_URLLIB3,
        ),
        Target(
            "openstack.object_store.v1.obj:Object.stream",
            make_stream,
            contract="""
                def stream(self, session, error_message=None, chunk_size=1024):
                    response = self._download(session, error_message=error_message, stream=True)
                    return response.iter_content(chunk_size, decode_unicode=False)
            """,
            requires=requests.WITH_URLLIB3,
        ),
        Target(
            "openstack.image._download:DownloadMixin.download",
            make_download,
            contract="""
                def download(self, session, stream=False, output=None, *_):
                    resp = session.get(url, stream=stream)
                    resp.iter_content(chunk_size=chunk_size)
            """,
            requires=requests.WITH_URLLIB3,
        ),
    ),
)
