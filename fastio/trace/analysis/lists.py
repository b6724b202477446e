"""Lists of what ran, requests and commands alike: the slowest, what failed, and when each part of a request ran."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from fastio.tables import EMPTY, Table, number
from fastio.trace.analysis import commands
from fastio.trace.analysis.analysis import Analysis
from fastio.trace.analysis.model import Span
from fastio.trace.analysis.requests import ABORTED, FAILED, OK, Request
from fastio.trace.analysis.views import count

#: Of a command whose exit status was never asked for.
UNKNOWN = "unknown"
#: Characters of a bar.
_BAR = 32


class Work(NamedTuple):
    """A request, a command, or a part of a request."""

    #: the kind of request, the program, or the name of a span
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
    #: the category of its error, how the command ended, or a span's values; empty if there is none
    why: str
    #: that were transferred
    bytes: int = 0
    command: bool = False

    @property
    def failed(self) -> bool:
        return self.outcome in (FAILED, ABORTED)


def works(analysis: Analysis) -> list[Work]:
    """All requests and commands, in the order of their beginnings."""
    found = [_request(each, analysis.causes.get(id(each), "")) for each in analysis.requests]
    found += map(_command, analysis.commands)
    return sorted(found, key=lambda work: (work.start, work.what, work.which))


def _request(request: Request, why: str) -> Work:
    where, times = request.ends[0].process.title, (request.start, request.duration)
    return Work(request.kind.name, request.id, where, *times, request.outcome, why, request.bytes)


def _command(span: Span) -> Work:
    outcome = FAILED if commands.failed(span) else UNKNOWN if span.text("outcome") == UNKNOWN else OK
    times = span.start, max(span.finish - span.start, 0)
    what, which, why = commands.program(span), f"span {span.id}", commands.why(span)
    return Work(what, which, span.process.title, *times, outcome, why, span.number_of("bytes"), True)


def slowest(found: Sequence[Work], most: int) -> list[Table]:
    """Those that took longest."""
    shown = sorted(found, key=lambda work: (-work.duration, work.start))[:most]
    title = f"The slowest {len(shown)} of {_counted(found)}"
    return [_table(title, shown, ["what", "which", "ms", "outcome", "why", "MB", "where"])]


def failures(found: Sequence[Work], most: int) -> list[Table]:
    """Those that failed or were aborted, by the reason, and the latest of them one by one."""
    bad = [work for work in found if work.failed]
    if not bad:
        return [Table(f"Nothing failed: {_counted(found)}", [], [])]
    reasons = Counter((work.what, work.outcome, work.why) for work in bad)
    kinds = [[*key, str(times)] for key, times in reasons.most_common(most)]
    title = f"Failed: {_counted(bad)}, of {_counted(found)}"
    latest = _table("The latest", bad[-most:], ["at ms", "what", "which", "ms", "outcome", "why", "where"])
    latest.notes += [f"and {len(bad) - most} before them"] if len(bad) > most else []
    return [Table(title, ["what", "outcome", "why", "times"], kinds), latest]


def waterfall(request: Request) -> Table:
    """When each state and each span of a request was."""
    found = [Work(f"state: {stay.state}", EMPTY, EMPTY, stay.start, stay.duration, EMPTY, "") for stay in request.stays]
    for span in request.spans:
        # A server's work is within its client's request.
        depth = sum(1 for _ in span.around())
        depth += request.client is not None and span.process is not request.client.process
        program = commands.program(span) if span.name == commands.COMMAND else EMPTY
        values = ", ".join(f"{name} {value}" for name, value in span.values.items() if name not in _ELSEWHERE)
        times = span.start, max(span.finish - span.start, 0)
        title = "\u2007" * 2 * depth + span.name
        found.append(Work(title, program, span.process.title, *times, span.text("outcome") or EMPTY, values))
    found.sort(key=lambda work: work.start)
    status = f", status {request.status}" if request.status else ""
    title = f"Waterfall of {request.title}: {request.outcome}{status}, {_ms(request.duration)} ms"
    made = _table(title, found, ["at ms", "when", "ms", "what", "program", "outcome", "values", "where"])
    made.notes.append(f"ended in state {request.state!r}")
    made.notes += [f"unexpected: {each}" for each in request.unexpected]
    return made


#: Values of a span that the title or another column has.
_ELSEWHERE = ("outcome", "request", "global", "program")


def _table(title: str, shown: Sequence[Work], columns: Sequence[str]) -> Table:
    """A row for each, with these columns."""
    first = min((work.start for work in shown), default=0)
    whole = max((work.start + work.duration for work in shown), default=0) - first
    cells = [
        {
            **dict.fromkeys(("which", "program"), work.which), **dict.fromkeys(("why", "values"), work.why or EMPTY),
            "what": work.what, "where": work.where, "outcome": work.outcome, "ms": _ms(work.duration),
            "at ms": f"{(work.start - first) / 1e6:.3f}", "when": _bar(work.start - first, work.duration, whole),
            "MB": number(work.bytes / 1e6) if work.bytes else EMPTY,
        }
        for work in shown
    ]  # fmt: skip
    notes = [f"the whole bar is {_ms(whole)} ms"] if "when" in columns else []
    return Table(title, columns, [[each[name] for name in columns] for each in cells], notes)


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
