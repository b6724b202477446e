"""The metrics of this process over HTTP, as WSGI and as ASGI applications. Each series has the pid of the process."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from fastio.watching import metrics

_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def wsgi(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer a request to a WSGI server with the text that Prometheus reads."""
    body = metrics.read().to_prometheus().encode()
    start_response("200 OK", [("Content-Type", _TYPE), ("Content-Length", str(len(body)))])
    return [body]


async def asgi(
    scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[dict[str, Any]], Awaitable[None]]
) -> None:
    """Answer a request to an ASGI server with the same."""
    if scope["type"] != "http":
        raise ValueError(f"{scope['type']}: not a request of HTTP")
    body = metrics.read().to_prometheus().encode()
    headers = [(b"content-type", _TYPE.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
