"""``trace_client``: the requests of glanceclient, as ``client.request``, until the last byte of a download.

Each request has a global request id, so that the server's records can be matched with it. If the caller has none, one
is made here and sent as ``X-OpenStack-Request-ID``. glance shows it in its log.
"""

import uuid
from collections.abc import Callable
from typing import Any

from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target
from fastio.trace import recorder, spans, values
from fastio.trace.spans import current
from fastio.trace.streams import Passed, watch

_HEADER = "X-OpenStack-Request-ID"


def make_request(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``HTTPClient._request``."""

    def _request(self: Any, method: Any, url: Any, **kwargs: Any) -> Any:
        return _run(self, method, url, kwargs, lambda: wrapped(self, method, url, **kwargs))

    return _request


def make_session_request(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``SessionClient.request``."""

    def request(self: Any, url: Any, method: Any, **kwargs: Any) -> Any:
        return _run(self, method, url, kwargs, lambda: wrapped(self, url, method, **kwargs))

    return request


def _run(client: Any, method: Any, url: Any, kwargs: dict[str, Any], call: Callable[[], Any]) -> Any:
    found = recorder.current()
    if found is None:
        return call()
    found.component = found.component or "client"
    identity = _identify(client, kwargs)
    span = spans.begin("client.request", method=values.method(method), path=values.route(str(url)), **identity)
    if identity:
        spans.point("message.sent", span, {"message": identity["global"]})
    before = current.get()
    current.set(span)
    try:
        response, body = call()
    except BaseException as error:
        status = getattr(error, "code", None)
        if type(status) is int:
            span.values["status"] = status
        span.fail(error)
        raise
    finally:
        current.set(before)
    span.values["status"] = response.status_code
    answered = values.request_id(response.headers.get(_HEADER))
    if answered is not None:
        span.values["request"] = answered
        spans.point("message.received", span, {"message": answered})
    if not hasattr(type(body), "__next__"):
        span.end()
        return response, body
    return response, watch(body, Passed(span, _received))


def _received(passed: Passed, outcome: str) -> None:
    passed.span.values.update(bytes=passed.bytes, chunks=passed.chunks, busy_ns=passed.ns)
    passed.span.end(outcome)


def _identify(client: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The request's global id, which is added to the headers in ``kwargs`` if there is none."""
    headers = kwargs.get("headers") or {}
    own = next((value for name, value in headers.items() if name.lower() == _HEADER.lower()), None)
    given = own or getattr(client, "global_request_id", None)
    if given is None:
        given = f"req-{uuid.uuid4()}"
        kwargs["headers"] = {**headers, _HEADER: given}
    identity = values.request_id(given)
    return {} if identity is None else {"global": identity}


PATCH = Patch(
    __name__,
    summary="glanceclient: each request, with the global request id that the server records too",
    targets=(
        Target(
            "glanceclient.common.http:HTTPClient._request",
            make_request,
            Uses("self, method, url, **kwargs", "pop headers"),
        ),
        Target(
            "glanceclient.common.http:SessionClient.request",
            make_session_request,
            Uses("self, url, method, **kwargs", "_handle_response pop headers"),
        ),
    ),
)
