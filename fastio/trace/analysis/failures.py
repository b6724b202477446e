"""Failures: errors by component and category, and the category of each failed request."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from fastio.trace.analysis.model import Span, Trace
from fastio.trace.analysis.requests import ABORTED, BAD_STATUS, FAILED, Request
from fastio.trace.analysis.rules import ABORTED as ABORTED_MARK
from fastio.trace.analysis.rules import OTHER, category

#: Categories that say no more than that something failed; another one of the same request explains it.
VAGUE = (OTHER, "internal error", "service unavailable", "bad request", "database error")


class Failure(NamedTuple):
    """An error of one component in one request, or outside of any."""

    component: str
    #: classes and codes
    error: str
    category: str
    span: Span
    request: Request | None
    #: the request did not fail because of it
    recovered: bool = False


def failures(trace: Trace, requests: Sequence[Request]) -> list[Failure]:
    """All errors; one that passes through several spans of a component counts once."""
    found: list[Failure] = []
    seen_spans: set[int] = set()
    for request in requests:
        seen: set[tuple[str, str]] = set()
        #: errors that a store raised are of the store's category further out, too
        categories: dict[str, str] = {}
        mark = ABORTED_MARK if request.outcome == ABORTED else ""
        # Inner spans end first, and are where it happened.
        for span in sorted(request.spans, key=lambda span: (span.finish, -span.start)):
            seen_spans.add(id(span))
            for error, recovered in _errors(span, request):
                if (span.component, error) not in seen:
                    seen.add((span.component, error))
                    of = categories.setdefault(error, category(span.component, error + mark))
                    found.append(Failure(span.component, error, of, span, request, recovered))
    for span in trace.spans():
        if id(span) not in seen_spans:
            for error, recovered in _errors(span, None):
                found.append(Failure(span.component, error, category(span.component, error), span, None, recovered))
    return found


def _errors(span: Span, request: Request | None) -> Iterator[tuple[str, bool]]:
    """The errors of a span, and whether they were recovered from."""
    error, recovered = span.text("error"), span.text("recovered")
    if error:
        yield error, False
    if recovered:
        yield recovered, True
    if error or request is None or span not in (request.server, request.client):
        return
    status = span.number_of("status")
    if status >= BAD_STATUS:
        yield f"HTTP {status}", False
    elif span.text("outcome") == "aborted":
        yield f"aborted: {'left before the end of the answer' if span.is_call else 'the client has gone'}", False
    elif span.text("outcome") == "error":
        yield "an error without a class", False


def causes(requests: Iterable[Request], found: Iterable[Failure]) -> dict[int, str]:
    """The category of each request that failed or was aborted, by its ``id()``: of its first error that explains it."""
    by_request: dict[int, list[str]] = {}
    for failure in found:
        if failure.request is not None and not failure.recovered:
            by_request.setdefault(id(failure.request), []).append(failure.category)
    made = {}
    for request in requests:
        if request.outcome in (FAILED, ABORTED):
            categories = by_request.get(id(request), [OTHER])
            telling = [each for each in categories if each not in VAGUE]
            made[id(request)] = (telling or categories)[0]
    return made


def errors(found: Sequence[Failure]) -> list[dict[str, Any]]:
    """The errors by component, error and category; the most frequent first."""
    made: dict[tuple[str, str, str], list[Failure]] = {}
    for failure in found:
        made.setdefault((failure.component, failure.error, failure.category), []).append(failure)
    return [
        {
            "component": component, "error": error, "category": category, "count": len(group),
            # Of those that did no harm to their request.
            "recovered": sum(each.recovered for each in group),
            "such as in": next((each.request.id for each in group if each.request is not None), ""),
        }
        for (component, error, category), group in sorted(made.items(), key=lambda item: (-len(item[1]), item[0]))
    ]  # fmt: skip
