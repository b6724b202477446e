"""The requests of a trace: what client and server recorded of each, its states, and how it ended."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fastio.trace.analysis.commands import outlasts
from fastio.trace.analysis.model import Span, Trace
from fastio.trace.analysis.rules import NEW, Kind, kind

OK, FAILED, ABORTED = "ok", "failed", "aborted"
#: From here on a status says that a request was not served.
BAD_STATUS = 400


@dataclass(frozen=True)
class Stay:
    """A time in a state, in ns since 1970."""

    state: str
    start: int
    finish: int

    @property
    def duration(self) -> int:
        return self.finish - self.start


@dataclass(eq=False)
class Request:
    """One request, seen by its client, its server or both."""

    kind: Kind
    #: the server's name of it (req-…), or the global id, or the number of its span
    id: str
    global_id: str
    server: Span | None
    client: Span | None
    #: all that belongs to it, in the order of their beginnings
    spans: list[Span] = field(default_factory=list)
    outcome: str = OK
    status: int = 0
    stays: list[Stay] = field(default_factory=list)
    #: the state at the end, or where the first error or abortion came
    state: str = NEW
    #: events that the state machine does not have where they came
    unexpected: list[str] = field(default_factory=list)

    @property
    def ends(self) -> list[Span]:
        """Its spans in the server and in the client, if they were recorded."""
        return [span for span in (self.server, self.client) if span is not None]

    @property
    def start(self) -> int:
        return min(each.start for each in self.ends)

    @property
    def finish(self) -> int:
        """Of the last thing known of it."""
        return max(self.spans[0].finish, *(each.finish for each in self.spans))

    @property
    def duration(self) -> int:
        return self.finish - self.start

    @property
    def title(self) -> str:
        return f"{self.kind.name} {self.id}"

    @property
    def trace(self) -> str:
        """The id of its trace, by which other tracers know it as well."""
        return self.ends[0].trace

    @property
    def bytes(self) -> int:
        """Of the image or other body that was sent, in whatever direction."""
        return max((each.number_of("bytes") for each in self.spans), default=0)


def requests(trace: Trace) -> list[Request]:
    """All requests, in the order of their beginnings; the times of the spans have to be corrected before."""
    spans = trace.spans()
    within: dict[tuple[int, str], list[Span]] = {}
    #: outermost spans that are no requests, but tell to which one they belong, by its id
    loose: dict[str, list[Span]] = {}
    for span in spans:
        if span.process.parent(span) is not None:
            within.setdefault((id(span.process), span.parent or ""), []).append(span)
        elif span.text("request") and not (span.is_call or span.is_server):
            loose.setdefault(span.text("request"), []).append(span)
    servers, callers = [span for span in spans if span.is_server], [span for span in spans if span.is_call]
    calls = _calls(servers, callers)
    found = [_request(server, calls.get(id(server))) for server in servers]
    called = {id(caller) for caller in calls.values()}
    found += [_request(None, caller) for caller in callers if id(caller) not in called]
    for each in found:
        own = [span for root in (*each.ends, *loose.get(each.id, ())) for span in _below(root, within)]
        # A call within a request is part of it, and a separate request.
        each.spans = sorted({id(span): span for span in own}.values(), key=lambda span: (span.start, span.id))
        _judge(each)
        _run(each)
    found.sort(key=lambda each: (each.start, each.id))
    return found


def _below(root: Span, within: Mapping[tuple[int, str], Sequence[Span]]) -> Iterator[Span]:
    """``root`` and all that is within it.

    Not what is within another request of a server, and not a command that goes on in the background.
    """
    seen: set[int] = set()
    left = [root]
    while left:
        span = left.pop()
        if id(span) not in seen:
            # Damaged files can have spans that are within each other.
            seen.add(id(span))
            yield span
            inner = within.get((id(span.process), span.id), ())
            left += [each for each in inner if not (each.is_server or outlasts(each, root))]


def _calls(servers: Sequence[Span], callers: Sequence[Span]) -> dict[int, Span]:
    """The caller of each server's request, by its ``id()``, for those that have one.

    Of several callers with the same global id, the caller is the last one that began before. One that began after can
    only be it if there is no other.
    """
    by_global: dict[str, list[Span]] = {}
    for caller in sorted(callers, key=lambda span: span.start):
        if caller.text("global"):
            by_global.setdefault(caller.text("global"), []).append(caller)
    served = Counter(server.text("global") for server in servers)
    found: dict[int, Span] = {}
    for server in sorted(servers, key=lambda span: -span.start):
        left = by_global.get(server.text("global"), [])
        method = server.text("method")
        possible = [
            caller for caller in left
            if caller.process is not server.process and (not method or caller.text("method") in ("", method))
        ]  # fmt: skip
        before = [caller for caller in possible if caller.start <= server.start]
        if before or len(possible) == served[server.text("global")] == 1:
            found[id(server)] = (before or possible)[-1]
            left.remove(found[id(server)])
    return found


def _request(server: Span | None, client: Span | None) -> Request:
    ends = [span for span in (server, client) if span is not None]

    def first(name: str) -> str:
        return next(filter(None, (span.text(name) for span in ends)), "")

    name = first("request") or first("global") or f"{ends[0].process.title}, span {ends[0].id}"
    return Request(kind(first("method"), first("path")), name, first("global"), server, client)


# How it ended.


def _judge(request: Request) -> None:
    told = request.ends
    request.status = next((span.number_of("status") for span in told if span.number_of("status")), 0)
    outcomes = {span.text("outcome") for span in told}
    if "aborted" in outcomes:
        request.outcome = ABORTED
    elif "error" in outcomes or request.status >= BAD_STATUS:
        request.outcome = FAILED


# Its states.


def _run(request: Request) -> None:
    """Drive the state machine over the request's events."""
    machine = request.kind.machine
    state, since = NEW, request.start
    failed = ""
    for time, event, span in _events(request):
        outcome = span.text("outcome")
        if event == "end" and outcome not in ("", "ok") and not failed:
            failed = state
        after = machine.following(state, event, span.name, outcome)
        if after is None:
            request.unexpected.append(f"{event} {span.name} in state {state!r}")
        elif after != state:
            if state != NEW:
                request.stays.append(Stay(state, since, max(time, since)))
            state, since = after, max(time, since)
    request.state = failed if failed and request.outcome in (FAILED, ABORTED) else state


def _events(request: Request) -> list[tuple[int, str, Span]]:
    """In the order of time; of those at the same moment, the outer begins first and ends last."""
    # The remaining difference of the clocks must not make a server begin before its client.
    first = request.client.start if request.client is not None else 0
    spans = request.spans
    if request.client is not None:
        spans = [request.client, *(span for span in spans if span is not request.client)]
    events = []
    for order, span in enumerate(spans):
        start, finish = max(span.start, first), max(span.finish, first)
        events.append(((start, 0, order), start, "begin", span))
        if span.end >= span.begin:
            empty = start == finish
            events.append(((finish, 0 if empty else -1, order if empty else -order), finish, "end", span))
    events.sort(key=lambda each: each[0])
    return [each[1:] for each in events]
