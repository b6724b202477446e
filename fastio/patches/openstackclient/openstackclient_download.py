"""``openstackclient_download``: ``openstack object save`` reads an object in large chunks.

Upstream reads 64 KiB at a time, through a buffer. With this patch, a piece is up to 1 MiB, and the data goes from the
kernel directly to it; see :mod:`fastio.io.unbuffered`. Time-outs and errors are upstream's, as in
``openstacksdk_download``, and so is what upstream's code reads. ``openstack image save`` downloads by openstacksdk.
"""

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.patches import requests
from fastio.patches.requests._downloads import Caller
from fastio.patching.registry import Layer, Patch, Target

_counts = counters.of(__name__)


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``APIv1.object_save``."""

    def object_save(self: Any, *args: Any, **kwargs: Any) -> Any:
        return wrapped(Caller(self, "_request", _counts, joined=True), *args, **kwargs)

    return object_save


PATCH = Patch(
    __name__,
    summary="python-openstackclient: `openstack object save` reads large chunks",
    layer=Layer.REPLACE,
    counted=False,
    targets=(
        Target(
            "openstackclient.api.object_store_v1:APIv1.object_save",
            make,
            contract="""
                def object_save(self, *_):
                    response = self._request("GET", _, stream=True)
                    response.iter_content(64 * 1024)
                    f.write(chunk)
            """,
            requires=requests.WITH_URLLIB3,
        ),
    ),
)
