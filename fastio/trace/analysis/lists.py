"""Lists of what ran, requests and commands alike: the slowest, what failed, and when each of them ran."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fastio.tables import EMPTY, Table, number
from fastio.trace.analysis import commands
from fastio.trace.analysis.analysis import Analysis
from fastio.trace.analysis.model import Span
from fastio.trace.analysis.requests import ABORTED, FAILED, OK, Request
from fastio.trace.analysis.views import count, depths

#: Of a command whose exit status nobody has asked for.
UNKNOWN = "unknown"
#: Characters of a bar.
_BAR = 32


@dataclass(frozen=True)
class Work:
    """A request or a command."""

    #: the kind of request, or the program
    what: str
    #: the request's id, or the number of the command's span
    which: str
    #: the process that served or made the request, or ran the command
    where: str
    #: ns since 1970
    start: int
    #: ns
    duration: int
    outcome: str
    #: the category of its error, or how the command ended; empty if it is ok
    why: str
    #: that were transferred
    bytes: int
    command: bool
    #: whether it is a command that is part of a request
    inside: bool

    @property
    def failed(self) -> bool:
        return self.outcome in (FAILED, ABORTED)


def works(analysis: Analysis) -> list[Work]:
    """All requests and commands, in the order of their beginnings."""
    inside = {id(span) for request in analysis.requests for span in request.spans}
    found = [_request(each, analysis.causes.get(id(each), "")) for each in analysis.requests]
    found += [_command(each, id(each) in inside) for each in analysis.commands]
    return sorted(found, key=lambda work: (work.start, work.what, work.which))


def _request(request: Request, why: str) -> Work:
    where = (request.server or request.root).process.title
    times = request.start, request.duration
    return Work(request.kind.name, request.id, where, *times, request.outcome, why, request.bytes, False, False)


def _command(span: Span, inside: bool) -> Work:
    if commands.failed(span):
        outcome = FAILED
    else:
        outcome = UNKNOWN if span.text("outcome") == UNKNOWN else OK
    moved = int(span.number_of("bytes"))
    which, where = f"span {span.id}", span.process.title
    times = span.start, max(span.finish - span.start, 0)
    return Work(commands.program(span), which, where, *times, outcome, commands.why(span), moved, True, inside)


def slowest(found: Sequence[Work], most: int) -> list[Table]:
    """Those that took longest."""
    shown = sorted(found, key=lambda work: (-work.duration, work.start))[:most]
    rows = [
        [work.what, work.which, _ms(work.duration), work.outcome, work.why or EMPTY, _megabytes(work), work.where]
        for work in shown
    ]
    head = ["what", "which", "ms", "outcome", "why", "MB", "where"]
    return [Table(f"The slowest {len(shown)} of {_counted(found)}", head, rows)]


def failures(found: Sequence[Work], most: int) -> list[Table]:
    """Those that failed or were aborted, by the reason, and the latest of them one by one."""
    bad = [work for work in found if work.failed]
    if not bad:
        return [Table(f"Nothing failed: {_counted(found)}", [], [])]
    reasons = Counter((work.what, work.outcome, work.why) for work in bad)
    kinds = [[*map(str, key), str(times)] for key, times in reasons.most_common(most)]
    first = bad[0].start
    rows = [
        [
            work.what,
            work.which,
            f"{(work.start - first) / 1e9:.3f}",
            _ms(work.duration),
            work.outcome,
            work.why,
            work.where,
        ]
        for work in bad[-most:]
    ]
    notes = [f"and {len(bad) - len(rows)} before them"] if len(bad) > len(rows) else []
    return [
        Table(f"Failed: {_counted(bad)}, of {_counted(found)}", ["what", "outcome", "why", "times"], kinds),
        Table(
            "The latest, from the first failure on",
            ["what", "which", "at s", "ms", "outcome", "why", "where"],
            rows,
            notes,
        ),
    ]


def waterfall(found: Sequence[Work], most: int) -> list[Table]:
    """When each ran; a command that is part of a request is in that request's own waterfall."""
    outer = [work for work in found if not work.inside]
    if not outer:
        return [Table("Nothing ran: no requests and no commands", [], [])]
    shown = outer[:most]
    first, last = shown[0].start, max(work.start + work.duration for work in shown)
    rows = [
        [
            f"{(work.start - first) / 1e6:.3f}",
            _bar(work.start - first, work.duration, last - first),
            _ms(work.duration),
            work.what, work.which, work.outcome, work.where,
        ]
        for work in shown
    ]  # fmt: skip
    notes = [f"the whole bar is {_ms(last - first)} ms"]
    notes += [f"and {len(outer) - len(shown)} after them: --most shows more"] if len(outer) > len(shown) else []
    head = ["at ms", "when", "ms", "what", "which", "outcome", "where"]
    return [Table(f"Waterfall of {_counted(shown)}", head, rows, notes)]


def waterfall_of(request: Request) -> list[Table]:
    """When each span of a request ran."""
    depth = depths(request)
    whole = request.duration
    rows = []
    for span in request.spans:
        start, duration = span.start - request.start, max(span.finish - span.start, 0)
        name = commands.program(span) if span.name == commands.COMMAND else ""
        rows.append(
            [
                f"{start / 1e6:.3f}",
                _bar(start, duration, whole),
                _ms(duration),
                "\u2007" * 2 * depth[id(span)] + span.name,
                name or EMPTY,
                span.text("outcome") or EMPTY,
                span.process.title,
            ]
        )
    head = ["at ms", "when", "ms", "what", "program", "outcome", "where"]
    return [Table(f"Waterfall of {request.title}: {request.outcome}, {_ms(whole)} ms", head, rows)]


def _bar(start: int, duration: int, whole: int) -> str:
    """A line of ``whole`` ns with what lies from ``start`` on."""
    scale = _BAR / max(whole, 1)
    begin = min(max(int(start * scale), 0), _BAR - 1)
    end = min(max(round((start + duration) * scale), begin + 1), _BAR)
    return "·" * begin + "█" * (end - begin) + "·" * (_BAR - end)


def _counted(found: Sequence[Work]) -> str:
    run = sum(work.command for work in found)
    said = [count(len(found) - run, "request")] * (run < len(found)) + [count(run, "command")] * (run > 0)
    return " and ".join(said) or "no requests and no commands"


def _ms(ns: float) -> str:
    return number(ns / 1e6)


def _megabytes(work: Work) -> str:
    return number(work.bytes / 1e6) if work.bytes else EMPTY
