"""W3C Trace Context: the trace that a request is part of, and the headers that hand it on.

https://www.w3.org/TR/trace-context-1/ has the headers. ``traceparent`` has the ids of the trace and of the caller's
span, and whether the caller records. ``tracestate`` is other tracers' own. It is carried unchanged and never recorded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from fastio.trace import recorder
from fastio.trace.spans import Span

PARENT, STATE = "traceparent", "tracestate"

_IDS = "(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})"
#: A version that is not known may have more behind what version 00 has.
_VALID = re.compile(f"00-{_IDS}|(?!00|ff)[0-9a-f]{{2}}-{_IDS}(?:-.*)?")
#: The only flag of version 00; the others are to be zero in what is sent.
_SAMPLED = 1
#: What may be sent in a header. Longer ones need not be carried, and would be too much for some servers.
_PLAIN = re.compile(r"[\t -~]{1,512}")


class Context(NamedTuple):
    """The trace that a request is part of."""

    trace: str
    #: the caller's span
    caller: str
    sampled: bool
    #: the header, empty if there is none
    state: str


def received(environ: Mapping[str, Any]) -> Context | None:
    """The context of a request, from its WSGI environment; None if there is none, or it is not valid."""
    parent = environ.get("HTTP_TRACEPARENT")
    found = _VALID.fullmatch(parent.strip(" \t")) if isinstance(parent, str) else None
    if found is None:
        return None
    trace, caller, flags = filter(None, found.groups())
    state = environ.get("HTTP_TRACESTATE", "")
    if not isinstance(state, str) or not _PLAIN.fullmatch(state):
        state = ""
    return Context(trace, caller, bool(int(flags, 16) & _SAMPLED), state)


def handed_on(span: Span) -> dict[str, str]:
    """The headers of a request that is made in ``span``; none if the span is not recorded any more."""
    if span.ended or span.recorder is None or span.recorder is not recorder.active:
        return {}
    part_of: Context | None = span.root.context
    headers = {PARENT: f"00-{span.trace}-{span.id}-{int(part_of is None or part_of.sampled):02x}"}
    return {**headers, STATE: part_of.state} if part_of is not None and part_of.state else headers
