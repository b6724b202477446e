"""Spans: what began and ended, in what, and how long the hub had others run meanwhile.

The current span of a greenlet, or of a thread, is in a context variable: each greenlet has a context of its own.
"""

from __future__ import annotations

import _thread
import functools
import itertools
import sys
import time
from contextvars import ContextVar
from typing import Any

from fastio.trace import recorder, redaction

_monotonic = time.monotonic_ns
_numbers = itertools.count(1)

try:
    # This tells greenlets apart, and threads as well: each thread has a greenlet of its own.
    from greenlet import getcurrent as _here
except ImportError:
    # Not threading.current_thread(), which takes a lock in a thread that it does not know.
    _here = functools.partial(getattr, _thread._local(), "__dict__")

#: ns of the clock that events have
now = _monotonic

OK, ERROR, ABORTED, UNKNOWN = map(redaction.Harmless, ("ok", "error", "aborted", "unknown"))


class Span:
    """Something that has begun. ``end()`` may be called more often; the first call counts."""

    __slots__ = ("number", "parent", "within", "name", "values", "waits", "wait_ns", "ended", "context")

    def __init__(self, name: str, parent: Span | None = None, values: dict[str, Any] | None = None) -> None:
        self.number = next(_numbers)
        self.parent = parent
        self.name = name
        #: of the end
        self.values: dict[str, Any] = {}
        #: in the hub, those of the spans within included
        self.waits = 0
        self.wait_ns = 0
        self.ended = False
        #: a :class:`fastio.trace.context.Context`, of a request that came in with one
        self.context: Any = None
        self.within = None if parent is None else parent.number
        event("B", self.number, self.within, name, values or {})

    def end(self, outcome: str = OK) -> None:
        if self.ended:
            return
        self.ended = True
        parent, values = self.parent, self.values
        if self.waits:
            values.setdefault("waits", self.waits)
            values.setdefault("wait_ns", self.wait_ns)
            if parent is not None:
                parent.waits += self.waits
                parent.wait_ns += self.wait_ns
        if "outcome" not in values:
            values["outcome"] = outcome
        event("E", self.number, self.within, self.name, values)

    def fail(self, error: BaseException) -> None:
        """End with an error."""
        if not self.ended:
            self.note(error)
            self.end(ERROR)

    def note(self, error: BaseException) -> None:
        """Have the error text of ``error`` at the end, unless there is one from before."""
        if "error" not in self.values:
            self.values["error"] = redaction.error(error)

    @property
    def root(self) -> Span:
        """The span that is within no other one, such as the request."""
        span = self
        while span.parent is not None:
            span = span.parent
        return span

    def __enter__(self) -> Span:
        current.set(self)
        return self

    def __exit__(self, cls: Any, error: BaseException | None, traceback: Any) -> None:
        current.set(self.parent)
        if error is None:
            self.end()
        else:
            self.fail(error)


#: The innermost span of this greenlet or thread.
current: ContextVar[Span | None] = ContextVar("fastio_trace_span", default=None)


def begin(name: str, **values: Any) -> Span:
    """A span within the current one. As a context manager it is the current one itself until it ends."""
    parent = current.get()
    return Span(name, parent, values if parent is not None else {**values, **of_context()})


def point(name: str, span: Span | None, values: dict[str, Any]) -> None:
    """Something that happened, without a duration."""
    event("P", 0 if span is None else span.number, None, name, values)


def event(kind: str, number: int, parent: int | None, name: str, values: dict[str, Any]) -> None:
    found = recorder.active
    if found is not None:
        what = (kind, _monotonic(), number, parent, name, id(_here()), values)
        if len(found.buffer) < found.room:
            found.buffer.append(what)
        else:
            found.put_without_room(what)


def of_context() -> dict[str, str]:
    """The request ids of oslo.context, for what happens outside of a request's own greenlet or thread."""
    module = sys.modules.get("oslo_context.context")
    context = None if module is None else module.get_current()
    found: dict[str, str] = {}
    for key, attribute in (("request", "request_id"), ("global", "global_request_id")):
        value = redaction.request_id(getattr(context, attribute, None))
        if value is not None:
            found[key] = value
    return found


def is_on() -> bool:
    """Whether events are recorded."""
    return recorder.active is not None
