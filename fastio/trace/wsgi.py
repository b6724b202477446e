"""A WSGI application with a span for each of its requests: glance-api, the log server, or any other.

The span begins when the server calls the application. It ends when the server has taken the last of the body, or has
closed the body early, because the client has gone. Within it, ``<component>.body`` is the time in which the body is
sent.
"""

from collections.abc import Callable, Iterable
from typing import Any

from fastio.trace import recorder, spans, values
from fastio.trace.spans import Span, current
from fastio.trace.streams import Body, Passed

_REQUEST_ID = "x-openstack-request-id"


def traced(application: Callable[..., Any], component: str, name: str | None = None) -> Callable[..., Any]:
    """``application``, whose requests are recorded while tracing is on.

    :param component: name of the process in its files, such as ``glance-api``
    :param name: beginning of the spans' names, such as ``glance``; by default the component
    """
    name = component if name is None else name
    names = f"{name}.request", f"{name}.body"

    def trace(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        found = recorder.current()
        if found is None:
            return application(environ, start_response)
        found.warn()
        found.component = component
        return _Request(environ, *names).run(application, start_response)

    return trace


class _Request:
    """One request."""

    def __init__(self, environ: dict[str, Any], name: str, body_name: str) -> None:
        self._environ = environ
        self._body_name = body_name
        found: dict[str, Any] = {
            "method": values.method(environ.get("REQUEST_METHOD", "")),
            "path": values.route(environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")),
        }
        identity = values.request_id(environ.get("HTTP_X_OPENSTACK_REQUEST_ID"))
        if identity is not None:
            found["global"] = identity
        self.span = Span(name, None, found)
        if identity is not None:
            spans.point("message.received", self.span, {"message": identity})

    def run(self, application: Callable[..., Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        span = self.span
        current.set(span)

        def start(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
            self._answers(status, headers)
            return start_response(status, headers, *exc_info)

        try:
            body = application(self._environ, start)
        except BaseException as error:
            span.fail(error)
            current.set(None)
            raise
        if type(body) in (list, tuple):
            # It is all there: the server may look at how many parts it has.
            span.values["bytes"] = sum(map(len, body))
            self._end(spans.OK)
            return body
        return Body(body, Passed(Span(self._body_name, span), self._sent))

    def _answers(self, status: str, headers: list[tuple[str, str]]) -> None:
        found = self.span.values
        code = status[:3]
        found["status"] = int(code) if code.isdigit() and code.isascii() else 0
        for name, value in headers:
            # The length first: an answer has many headers, and this is once for each of them.
            if len(name) == len(_REQUEST_ID) and name.lower() == _REQUEST_ID:
                identity = values.request_id(value)
                if identity is not None and "request" not in found:
                    found["request"] = identity
                    spans.point("message.sent", self.span, {"message": identity})

    def _sent(self, passed: Passed, outcome: str) -> None:
        found = passed.span.values
        found["bytes"] = self.span.values["bytes"] = passed.bytes
        found["chunks"] = passed.chunks
        if "error" in found:
            self.span.values.setdefault("error", found["error"])
        passed.span.end(outcome)
        self._end(outcome)

    def _end(self, outcome: str) -> None:
        found = self.span.values
        if found.get("status", 0) >= 400:
            outcome = spans.ERROR if outcome == spans.OK else outcome
            found.setdefault("error", values.status(found["status"]))
        elif outcome == spans.OK and "error" in found:
            # Errors on the way have not kept the client from its answer.
            found["recovered"] = found.pop("error")
        self.span.end(outcome)
        now = current.get()
        if now is not None and now.root is self.span:
            # Not so where the server has forgotten the body, and another request runs.
            current.set(None)
