"""The metrics over HTTP, as WSGI and as ASGI applications.

With the setting ``run_dir`` they are the sums of all processes that have the same one; else those of the process that
answers, and each series has its pid.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from fastio.watching import metrics, publishing

_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def _text() -> bytes:
    found = publishing.all_processes()
    return (metrics.read().to_prometheus() if found is None else metrics.text(found, {})).encode()


def wsgi(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer a request to a WSGI server with the text that Prometheus reads."""
    body = _text()
    start_response("200 OK", [("Content-Type", _TYPE), ("Content-Length", str(len(body)))])
    return [body]


async def asgi(
    scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[dict[str, Any]], Awaitable[None]]
) -> None:
    """Answer a request to an ASGI server with the same."""
    if scope["type"] != "http":
        raise ValueError(f"{scope['type']}: not a request of HTTP")
    body = _text()
    headers = [(b"content-type", _TYPE.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
