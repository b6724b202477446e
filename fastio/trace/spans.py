"""Spans: what began and ended, within what, and how long the hub had others run meanwhile.

The current span of a greenlet, or of a thread, is in a context variable: each greenlet has its own context.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from contextvars import ContextVar
from typing import Any

from fastio.trace import recorder, values
from fastio.trace.values import Recordable

#: ns of the clock that spans have
now = time.monotonic_ns

OK, ERROR, ABORTED, UNKNOWN = map(Recordable, ("ok", "error", "aborted", "unknown"))
#: Events that a span keeps.
_MOST_EVENTS = 32


class Span:
    """Something that has begun. ``end()`` may be called more often; the first call counts."""

    __slots__ = (
        "began", "batch", "ended", "events", "finished", "id", "name", "parent", "parent_id", "recorder", "root",
        "trace", "values", "wait_ns", "waits",
    )  # fmt: skip

    def __init__(self, name: str, parent: Span | None = None, values: dict[str, Any] | None = None) -> None:
        self.name = name
        self.parent = parent
        self.values: dict[str, Any] = {} if values is None else values
        self.events: list[tuple[int, str, dict[str, Any]]] = []
        #: in the hub, those of the spans within included
        self.waits = 0
        self.wait_ns = 0
        self.ended = False
        self.finished = 0
        if parent is None:
            self.recorder = recorder.current()
            self.root = self
            #: spans of this root that have ended and are not written yet
            self.batch: deque[Span] = deque()
            self.trace = self._trace()
            self.parent_id = ""
        else:
            self.recorder, self.root, self.batch = parent.recorder, parent.root, parent.batch
            self.trace, self.parent_id = parent.trace, parent.id
        self.id: str = "" if self.recorder is None else self.recorder.new_id()
        self.began = now()

    def _trace(self) -> str:
        """The id of a trace that begins here: that of the global request id, so client and server have the same."""
        identity = self.values.get("global")
        trace = "" if identity is None else identity.removeprefix("req-").replace("-", "")
        # Zero is no id.
        return trace if trace.strip("0") or self.recorder is None else self.recorder.new_trace()

    def end(self, outcome: str = OK) -> None:
        if self.ended:
            return
        self.finished = now()
        self.ended = True
        parent, found = self.parent, self.values
        if self.waits:
            found.setdefault("waits", self.waits)
            found.setdefault("wait_ns", self.wait_ns)
            if parent is not None:
                parent.waits += self.waits
                parent.wait_ns += self.wait_ns
        found.setdefault("outcome", outcome)
        # In a forked child, a span of its parent is the parent's to write.
        if self.recorder is not None and self.recorder is recorder.active:
            self.recorder.add(self)

    def fail(self, error: BaseException) -> None:
        """End with an error."""
        if not self.ended:
            self.note(error)
            self.end(ERROR)

    def note(self, error: BaseException) -> None:
        """Have ``error`` recorded at the end, unless there is one from before."""
        if "error" not in self.values:
            self.values["error"] = values.error(error)

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
    return Span(name, parent, values if parent is not None else {**values, **_of_context()})


def point(name: str, span: Span, values: dict[str, Any]) -> None:
    """Something that happened in a span, without a duration."""
    if len(span.events) < _MOST_EVENTS:
        span.events.append((now(), name, values))


def _of_context() -> dict[str, Recordable]:
    """The request ids of oslo.context, for what happens outside of a request's own greenlet or thread."""
    module = sys.modules.get("oslo_context.context")
    context = None if module is None else module.get_current()
    found: dict[str, Recordable] = {}
    for key, attribute in (("request", "request_id"), ("global", "global_request_id")):
        value = values.request_id(getattr(context, attribute, None))
        if value is not None:
            found[key] = value
    return found


def is_on() -> bool:
    """Whether spans are recorded."""
    return recorder.active is not None


def _forked() -> None:
    # The child's work is not within its parent's.
    current.set(None)


os.register_at_fork(after_in_child=_forked)
