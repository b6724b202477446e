"""What failed: error texts grouped by their template, in categories, and the category of each failed request."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fastio.trace.analysis import extra
from fastio.trace.analysis.messages import CALLER
from fastio.trace.analysis.model import Span, Trace
from fastio.trace.analysis.requests import ABORTED, BAD_STATUS, FAILED, Request
from fastio.trace.analysis.rules import OTHER, Rules

#: Categories that say no more than that something failed; another one of the same request explains it.
VAGUE = (OTHER, "internal error", "service unavailable", "bad request")
#: Said of a request that was aborted, beside the text of an error in it, when the category is looked for.
ABORTED_MARK = " [request aborted]"

#: What differs from one message to the next, in the order in which it is looked for.
_VARIABLE = (
    (re.compile(r"\breq-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.I), "<request>"),
    (re.compile(r"\b[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}\b", re.I), "<uuid>"),
    (re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>,;)\]}]+", re.I), "<address>"),
    (re.compile(r"\b0x[0-9a-f]+\b", re.I), "<hex>"),
    (re.compile(r"\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b"), "<ip>"),
    (re.compile(r"(?<![\w<])(/[\w.@%+~<>-]+){2,}/?"), "<path>"),
    (re.compile(r"\b[0-9a-f]{16,}\b", re.I), "<hex>"),
    # Not those that tell what happened: an errno or a status.
    (re.compile(r"(?<!Errno )(?<!HTTP )(?<![\w.<])-?\d+(\.\d+)?(?![\w>])"), "<number>"),
)


@dataclass(frozen=True)
class Failure:
    """An error of one component in one request, or outside of any."""

    component: str
    text: str
    category: str
    span: Span
    request: Request | None
    #: the request did not fail because of it
    recovered: bool = False


@dataclass
class Group:
    """Errors of a component and a category whose texts have the same template."""

    component: str
    template: str
    category: str
    count: int
    #: how many of them did no harm to their request
    recovered: int
    #: one that has such an error
    request: str


def failures(trace: Trace, requests: Sequence[Request], rules: Rules) -> list[Failure]:
    """All errors; one that passes through several spans of a component counts once."""
    found: list[Failure] = []
    seen_spans: set[int] = set()
    for request in requests:
        told: set[tuple[str, str]] = set()
        #: what was raised in a store is of the store's category further out, too
        categories: dict[str, str] = {}
        # Inner spans end first, and are where it happened.
        for span in sorted(request.spans, key=lambda span: (span.finish, -span.start)):
            seen_spans.add(id(span))
            for text, recovered in _texts(span, request):
                if (span.component, text) not in told:
                    told.add((span.component, text))
                    mark = ABORTED_MARK if request.outcome == ABORTED else ""
                    category = categories.setdefault(text, rules.category(span.component, text + mark))
                    found.append(Failure(span.component, text, category, span, request, recovered))
    for span in trace.spans():
        if id(span) not in seen_spans:
            for text, recovered in _texts(span, None):
                category = rules.category(span.component, text)
                found.append(Failure(span.component, text, category, span, None, recovered))
    return found


def _texts(span: Span, request: Request | None) -> Iterator[tuple[str, bool]]:
    """The errors that a span tells, and whether they were recovered from."""
    error, recovered = span.text("error"), span.text("recovered")
    if error:
        yield error, False
    if recovered:
        yield recovered, True
    if error or request is None or span not in (request.server, request.client):
        return
    status = int(span.number_of("status"))
    if status >= BAD_STATUS:
        yield f"HTTP {status}", False
    elif span.text("outcome") == "aborted":
        gone = "left before the end of the answer" if span.name == CALLER else "the client has gone"
        yield f"aborted: {gone}", False
    elif span.text("outcome") == "error":
        yield "an error without a text", False


def causes(requests: Iterable[Request], found: Iterable[Failure]) -> dict[int, str]:
    """The category of each request that failed or was aborted, by its ``id()``: of its first error that tells it."""
    by_request: dict[int, list[str]] = {}
    for failure in found:
        if failure.request is not None and not failure.recovered:
            by_request.setdefault(id(failure.request), []).append(failure.category)
    made = {}
    for request in requests:
        if request.outcome in (FAILED, ABORTED):
            categories = by_request.get(id(request), [OTHER])
            telling = [category for category in categories if category not in VAGUE]
            made[id(request)] = (telling or categories)[0]
    return made


def groups(found: Sequence[Failure]) -> list[Group]:
    """The errors by component, template and category; the most frequent first.

    :raises TraceError: if there are any, and drain3 is not installed
    """
    kinds: dict[tuple[str, str], list[Failure]] = {}
    for failure in found:
        kinds.setdefault((failure.component, failure.category), []).append(failure)
    made: list[Group] = []
    for (component, category), of_kind in sorted(kinds.items()):
        words = [masked(each.text) for each in of_kind]
        templates = _templates(words)
        by_template: dict[str, list[Failure]] = {}
        for failure, text in zip(of_kind, words, strict=True):
            by_template.setdefault(templates[text], []).append(failure)
        for template, own in by_template.items():
            request = own[0].request.id if own[0].request is not None else ""
            recovered = sum(each.recovered for each in own)
            made.append(Group(component, template, category, len(own), recovered, request))
    return sorted(made, key=lambda each: (-each.count, each.component, each.template))


def masked(text: str) -> str:
    """``text`` with what is surely variable replaced, so that drain3 sees words."""
    for pattern, replacement in _VARIABLE:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


def _templates(texts: Sequence[str]) -> dict[str, str]:
    """The template of each text, by drain3."""
    drain3 = extra.needed("drain3")
    config = extra.needed("drain3.template_miner_config").TemplateMinerConfig()
    # A digit in a word, as in "s3", makes it no variable: numbers are masked already.
    config.parametrize_numeric_tokens = False
    miner = drain3.TemplateMiner(config=config)
    # In a fixed order: templates depend on it.
    clusters = {text: miner.add_log_message(text)["cluster_id"] for text in sorted(set(texts))}
    return {text: miner.drain.id_to_cluster[cluster].get_template() for text, cluster in clusters.items()}
