"""``trace_client``: the requests of glanceclient, as ``client.request``, until the last byte of a download.

Each request has a global request id, so that the server's records can be matched with it. If the caller has none, one
is made here and sent as ``X-OpenStack-Request-ID``. glance shows it in its log.
"""

import uuid
from collections.abc import Callable
from typing import Any

from fastio.patching.registry import Layer, Patch, Target
from fastio.trace import recorder, redaction, spans
from fastio.trace.spans import current
from fastio.trace.streams import Passed, watch

_HEADER = "X-OpenStack-Request-ID"


def make_request(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``HTTPClient._request``."""

    def _request(self: Any, method: Any, url: Any, **kwargs: Any) -> Any:
        if recorder.active is None:
            return wrapped(self, method, url, **kwargs)
        return _run(self, method, url, kwargs, lambda: wrapped(self, method, url, **kwargs))

    return _request


def make_session_request(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``SessionClient.request``."""

    def request(self: Any, url: Any, method: Any, **kwargs: Any) -> Any:
        if recorder.active is None:
            return wrapped(self, url, method, **kwargs)
        return _run(self, method, url, kwargs, lambda: wrapped(self, url, method, **kwargs))

    return request


def _run(client: Any, method: Any, url: Any, kwargs: dict[str, Any], call: Callable[[], Any]) -> Any:
    found = recorder.active
    if found is not None and not found.component:
        found.component = "client"
    identity = _identify(client, kwargs)
    asked = {"method": redaction.method(method), "path": redaction.path(str(url))}
    span = spans.begin("client.request", **asked, **identity)
    if identity:
        spans.point("message.sent", span, {"message": identity["global"]})
    before = current.get()
    current.set(span)
    try:
        response, body = call()
    except BaseException as error:
        status = getattr(error, "code", None)
        if isinstance(status, int):
            span.values["status"] = status
        span.fail(error)
        raise
    finally:
        current.set(before)
    span.values["status"] = response.status_code
    answered = redaction.request_id(response.headers.get(_HEADER))
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


def _identify(client: Any, kwargs: dict[str, Any]) -> dict[str, str]:
    """The request's global id, which is added to the headers in ``kwargs`` if there is none; nothing if it has none."""
    headers = kwargs.get("headers") or {}
    own = next((value for name, value in headers.items() if name.lower() == _HEADER.lower()), None)
    given = own or getattr(client, "global_request_id", None)
    if given is None:
        given = f"req-{uuid.uuid4()}"
        kwargs["headers"] = {**headers, _HEADER: given}
    identity = redaction.request_id(given)
    return {} if identity is None else {"global": identity}


PATCH = Patch(
    __name__,
    summary="glanceclient: each request, with the global request id that the server records too",
    layer=Layer.TRACE,
    targets=(
        Target(
            "glanceclient.common.http:HTTPClient._request",
            make_request,
            contract="""
                def _request(self, method, url, **kwargs):
                    return resp, body_iter
                    kwargs.pop("headers", {})
            """,
        ),
        Target(
            "glanceclient.common.http:SessionClient.request",
            make_session_request,
            contract="""
                def request(self, url, method, **kwargs):
                    return self._handle_response(resp)
                    kwargs.pop("headers", {})
            """,
        ),
    ),
)
