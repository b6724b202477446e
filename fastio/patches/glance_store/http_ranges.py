"""``http_ranges``: glance_store's http driver reads a large image by several connections where one is slow.

As ``s3_ranges`` does with the s3 driver. A part has the entity tag of the first answer. A server that has no strong tag
for the image, encodes its content, does not take ranges, or has changed the image in the last minute, sends one answer
as before.

Differences: a server sees more requests, and a first answer that is broken off.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from fastio import counters
from fastio.concurrency import handover
from fastio.io import ahead
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target

_counts = counters.of(__name__)

_MODULE = "glance_store._drivers.http"

#: From when on a date tells versions apart (RFC 9110, 8.8.2.2).
SETTLED = timedelta(seconds=60)


def make_response(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Store._get_response``: the answer knows how its parts are asked for."""

    def _get_response(self: Any, location: Any, verb: Any) -> Any:
        answer = wrapped(self, location, verb)
        if verb == "GET" and handover.is_possible():
            url, tag, size = (
                location.get_uri(),
                answer.headers.get("ETag", ""),
                answer.headers.get("Content-Length", ""),
            )

            def ask(first: int, end: int) -> Any:
                headers = {"Range": f"bytes={first}-{end - 1}", "If-Match": tag}
                part = self.session.request("GET", url, stream=True, allow_redirects=False, headers=headers)
                found = part.status_code, part.headers.get("Content-Range"), part.headers.get("ETag")
                if found != (206, f"bytes {first}-{end - 1}/{size}", tag) or "Content-Encoding" in part.headers:
                    part.close()
                    raise ValueError("not the part that was asked for")
                return part.raw.read, part.close

            whole = answer.status_code == 200 and "Content-Encoding" not in answer.headers
            if (
                whole
                and _is_settled(answer.headers)
                and tag.startswith('"')
                and size.isdecimal()
                and int(size) > ahead.LEAST
            ):
                answer.fastio_ask = int(size), ask
        return answer

    return _get_response


def _is_settled(headers: Mapping[str, str]) -> bool:
    """Whether the image is older than a tag may tell apart: that of some servers has seconds and the size only."""
    try:
        changed, now = (parsedate_to_datetime(headers[name]) for name in ("Last-Modified", "Date"))
        return now - changed >= SETTLED
    except (KeyError, TypeError, ValueError):
        return False


def make_iterator(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``http_response_iterator``."""

    def http_response_iterator(conn: Any, response: Any, size: int) -> Any:
        if hasattr(conn, "fastio_ask"):
            total, ask = conn.fastio_ask
            response = ahead.Ahead(response.read, conn.close, total, ask, _counts)
        return wrapped(conn, response, size)

    return http_response_iterator


PATCH = Patch(
    __name__,
    summary="glance_store's http: a large image comes by several connections where one is slow",
    changes="the server sees several requests for an image, and an answer that is broken off",
    targets=(
        Target(
            f"{_MODULE}:Store._get_response", make_response, Uses("self, location, verb", "session request get_uri")
        ),
        Target(f"{_MODULE}:http_response_iterator", make_iterator, Uses("conn, response, size", "yield read")),
    ),
)
