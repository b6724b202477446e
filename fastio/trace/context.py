"""W3C Trace Context: what a request says of the trace that it is part of, and what is said to those who are asked next.

https://www.w3.org/TR/trace-context-1/ has the headers. ``traceparent`` has the ids of the trace and of the caller's
span, and whether the caller records. ``tracestate`` is other tracers' own. It is carried as it is, and never recorded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from fastio.trace import redaction
from fastio.trace.spans import Span

PARENT, STATE = "traceparent", "tracestate"

_IDS = "(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})"
#: A version that is not known may have more behind what version 00 has.
_VALID = re.compile(f"00-{_IDS}|(?!00|ff)[0-9a-f]{{2}}-{_IDS}(?:-.*)?")
#: The only flag of version 00; the others are to be zero in what is sent.
_SAMPLED = 1
#: What may be sent in a header as it is. What is longer need not be carried, and would be too much for some servers.
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
    if parent is None:
        return None
    found = _VALID.fullmatch(parent.strip(" \t")) if isinstance(parent, str) else None
    if found is None:
        return None
    trace, caller, flags = filter(None, found.groups())
    state = environ.get("HTTP_TRACESTATE", "")
    if not isinstance(state, str) or not _PLAIN.fullmatch(state):
        state = ""
    return Context(trace, caller, bool(int(flags, 16) & _SAMPLED), state)


def values(context: Context) -> dict[str, Any]:
    """What is recorded of it."""
    return {
        "trace": redaction.Harmless(context.trace),
        "caller": redaction.Harmless(context.caller),
        "sampled": int(context.sampled),
    }


def handed_on(span: Span) -> dict[str, str]:
    """The headers of a request that is made in ``span``: the trace goes on, or begins.

    There are none if a span that has to tell of it is over: what is recorded does not change any more.
    """
    root = span.root
    part_of: Context | None = root.context
    if span.ended or (part_of is None and root.ended):
        return {}
    # Other threads may do the same at this moment, and the first one's ids hold for all.
    trace = part_of.trace if part_of is not None else _kept(root, "trace", 16)
    # By this others name the span; in its files it has a number only.
    identity = _kept(span, "context", 8)
    headers = {PARENT: f"00-{trace}-{identity}-{int(part_of is None or part_of.sampled):02x}"}
    return {**headers, STATE: part_of.state} if part_of is not None and part_of.state else headers


def _kept(span: Span, name: str, size: int) -> str:
    """The id that is recorded by this name at the end of ``span``, which is made if there is none."""
    return span.values.get(name) or span.values.setdefault(name, redaction.Harmless(_random(size)))


def _random(size: int) -> str:
    # Not of the module random, whose state a forked child shares. Zero is no id.
    while not any(found := os.urandom(size)):
        pass
    return found.hex()
