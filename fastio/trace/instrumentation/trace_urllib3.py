"""``trace_urllib3``: requests that urllib3 sends, also those of requests and boto3, carry the trace of their span.

The setting ``trace_context`` asks for it. It is off by default: who records a trace does not expect that a service's
requests change, and others see the headers: stores, proxies, and any server that the address of an image leads to.

The headers are ``traceparent`` and ``tracestate`` of W3C's Trace Context. They are added for one call, to a copy of
what the caller has given. A request outside of any span stays as it is, and so does one that has one of these headers:
then another tracer is at work, or urllib3 tries again. What http.client sends without urllib3 is not changed.
"""

from collections.abc import Callable
from typing import Any

from fastio.patching.known_code import Uses
from fastio.patching.registry import Layer, Patch, Target
from fastio.trace import context, spans
from fastio.trace.spans import Span, current

#: The place of the headers among the arguments, after the pool itself.
_PLACE = 3


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``HTTPConnectionPool.urlopen``."""

    def urlopen(self: Any, *args: Any, **kwargs: Any) -> Any:
        span = current.get()
        if span is None or not spans.is_on():
            return wrapped(self, *args, **kwargs)
        if len(args) > _PLACE:
            headers = _headers(self, args[_PLACE], span)
            args = (*args[:_PLACE], headers, *args[_PLACE + 1 :])
        else:
            kwargs["headers"] = _headers(self, kwargs.get("headers"), span)
        return wrapped(self, *args, **kwargs)

    return urlopen


def _headers(pool: Any, given: Any, span: Span) -> Any:
    """``given``, or a copy of it that has the trace."""
    try:
        # Without headers, those of the pool are sent.
        found = pool.headers if given is None else given
        made = found.copy()
        names = {(name.decode("latin-1") if isinstance(name, bytes) else name).lower() for name in made}
        if made is found or {context.PARENT, context.STATE} & names:
            return given
        added = context.handed_on(span)
        for name, value in added.items():
            made[name] = value
        return made if added else given
    except Exception:
        # What is no mapping that can be copied is urllib3's to judge.
        return given


PATCH = Patch(
    __name__,
    summary="urllib3, also beneath requests and boto3: the trace is handed on",
    layer=Layer.TRACE,
    only_with="trace_context",
    targets=(
        Target(
            "urllib3.connectionpool:HTTPConnectionPool.urlopen",
            make,
            Uses("self, method, url, body=None, headers=None, *_", "headers"),
        ),
    ),
)
