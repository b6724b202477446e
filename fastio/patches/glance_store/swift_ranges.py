"""``swift_ranges``: glance_store's swift driver reads a large image by several connections where one is slow.

As ``s3_ranges`` does with the s3 driver. swiftclient sends a request again from where an answer broke off; it does that
with the first answer as before. An object whose answer has no entity tag, such as a manifest of too many segments, is
read from one answer.

Differences: the service sees more requests, and a first answer that is broken off.
"""

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.concurrency import handover
from fastio.io import ahead
from fastio.patches.glance_store import _stores
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target
from fastio.proxy import Proxy

_counts = counters.of(__name__)


class _Answer(Proxy):
    """A response that is read ahead."""

    def __init__(self, response: Any, content: ahead.Ahead) -> None:
        super().__init__(response)
        self.read, self.close = content.read, content.close


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``BaseStore._get_object``."""

    def _get_object(self: Any, location: Any, manager: Any, start: Any = None) -> Any:
        headers, body = wrapped(self, location, manager, start)
        if start is None and handover.is_possible() and _is_plain(headers, body):
            # The body itself would be in a cycle, and its connection open until the next garbage collection.
            total, response = int(headers["content-length"]), body.resp
            ask = _requests(body.conn, location, headers["etag"], total)
            body.resp = _Answer(response, ahead.Ahead(response.read, response.close, total, ask, _counts))
        return headers, body

    return _get_object


def _requests(connection: Any, location: Any, tag: str, total: int) -> Callable[[int, int], Any]:
    """A function that asks for a part."""
    from swiftclient import client

    # Those that no part uses. One has one answer.
    idle: list[Any] = []

    def ask(first: int, end: int) -> Any:
        try:
            http = idle.pop()
        except IndexError:
            http = connection.http_connection()
        headers, part = client.get_object(
            connection.url, connection.token, location.container, location.obj, http, ahead.PIECE,
            headers={"Range": f"bytes={first}-{end - 1}", "If-Match": tag}, service_token=connection.service_token,
        )  # fmt: skip

        def close() -> None:
            part.close()
            idle.append(http)

        if (headers.get("content-range"), headers.get("etag")) != (f"bytes {first}-{end - 1}/{total}", tag):
            part.close()
            raise ValueError("not the part that was asked for")
        return part.resp.read, close

    return ask


def _is_plain(headers: Any, body: Any) -> bool:
    """Whether the content is all of a large object, which swiftclient reads."""
    from swiftclient import client

    tag, size = headers.get("etag") or "W/", headers.get("content-length") or ""
    whole = type(body) is client._RetryBody and "content-encoding" not in headers
    return whole and not tag.startswith("W/") and size.isdecimal() and int(size) > ahead.LEAST


PATCH = Patch(
    __name__,
    summary="glance_store's swift: a large image comes by several connections where one is slow",
    changes="the service sees several requests for an image, and an answer that is broken off",
    targets=(
        Target(
            f"{_stores.CLASSES['swift']}._get_object",
            make,
            Uses("self, location, manager, start=None", "get_connection get_object resp_chunk_size container obj"),
            {
                "swiftclient.client:_RetryBody.read": Uses("self, length=None", "resp read bytes_read conn"),
                "swiftclient.client:Connection.http_connection": Uses("self, url=None", "http_connection url"),
                "swiftclient.client:get_object": Uses(
                    "url, token, container, name, http_conn=None, resp_chunk_size=None, query_string=None, "
                    "response_dict=None, headers=None, service_token=None",
                    "getresponse _ObjectBody",
                ),
            },
        ),
    ),
)
