"""The report as tables for a terminal."""

from collections import Counter
from collections.abc import Sequence

from fastio.tables import EMPTY, Table, number
from fastio.trace.analysis import commands, components
from fastio.trace.analysis.analysis import (
    OUTCOMES,
    PERCENTILES,
    Analysis,
    component_times,
    percentile,
    state_times,
)
from fastio.trace.analysis.clocks import Correction
from fastio.trace.analysis.model import Span
from fastio.trace.analysis.requests import OK, Request

#: Rows of a list of what is wrong; the rest is counted.
MOST = 20


def lead(analysis: Analysis) -> list[str]:
    """Lines that come first: how many requests there were, and how they ended."""
    outcomes = Counter(each.outcome for each in analysis.requests)
    counts = analysis.trace.counts
    said = ", ".join(f"{outcomes[each]} {each}" for each in OUTCOMES if outcomes[each])
    ran, failed = len(analysis.commands), sum(map(commands.failed, analysis.commands))
    about = [f"{count(len(analysis.requests), 'request')}: {said}"] if analysis.requests else []
    about += [f"{count(ran, 'command')}: {ran - failed} ok, {failed} failed"] if ran else []
    text = "; ".join(about) or "no requests and no commands"
    lines = [
        text,
        (
            f"  * {count(counts['spans'], 'span')} of {count(counts['processes'], 'process', 'processes')} on "
            f"{count(counts['hosts'], 'host')}, in {count(counts['files'], 'file')}"
        ),
    ]
    if counts["lost spans"]:
        lines.append(f"  * {counts['lost spans']} spans were lost while recording")
    if not analysis.sound:
        lines.append("  * not all of the data is sound: see the last tables")
    return lines


def tables(analysis: Analysis, chosen: str | None = None) -> list[Table]:
    """All tables that have rows.

    :param chosen: the id of a request, whose time line comes first
    """
    found = [timeline(each) for each in analysis.request(chosen)] if chosen is not None else []
    for part in (_requests, _components, _states, _commands, _errors, _clocks, _data):
        found += part(analysis)
    return [each for each in found if each.rows]


# Requests.


def _requests(analysis: Analysis) -> list[Table]:
    head = ["kind", "requests", *OUTCOMES, "success", "other attempts", "retries within", *_percentile_heads(), "MB/s"]
    rows = [_rates(name, own) for name, own in analysis.kinds().items()]
    by_level: dict[int, list[Request]] = {}
    for each in analysis.requests:
        by_level.setdefault(components.level(each.concurrency), []).append(each)
    levels = [_rates(components.level_name(level), own) for level, own in sorted(by_level.items())]
    notes = [
        "other attempts: the same again, for the same global id, after "
        "one that failed; retries within: something within a request again after an error; times of those that are ok",
    ]
    parts = [
        Table("Requests by kind", head, rows, notes),
        Table("Requests by how many were in flight", ["in flight", *head[1:]], levels),
    ]
    unexpected = Counter(f"{each.kind.name}: {what}" for each in analysis.requests for what in each.unexpected)
    if unexpected:
        rows = [[what, str(count)] for what, count in unexpected.most_common(MOST)]
        parts.append(Table("Events that the states do not allow for", ["event", "times"], rows))
    return parts


def _rates(name: str, own: Sequence[Request]) -> list[str]:
    outcomes = Counter(each.outcome for each in own)
    well = [each for each in own if each.outcome == OK]
    seconds = sum(each.duration for each in well) / 1e9
    moved = sum(each.bytes for each in well) / 1e6
    return [
        name,
        str(len(own)),
        *(str(outcomes[each]) for each in OUTCOMES),
        f"{outcomes[OK] / len(own):.1%}",
        str(sum(each.attempt for each in own)),
        str(sum(each.retries for each in own)),
        *_percentile_cells([each.duration for each in well]),
        number(moved / seconds) if moved and seconds else EMPTY,
    ]


def _percentile_heads() -> list[str]:
    return [f"p{part} ms" for part in PERCENTILES] + ["max ms"]


def _percentile_cells(times: Sequence[int]) -> list[str]:
    if not times:
        return [EMPTY] * (len(PERCENTILES) + 1)
    return [_ms(percentile(times, part)) for part in PERCENTILES] + [_ms(max(times))]


def _ms(ns: float) -> str:
    return number(ns / 1e6)


# Components.


def _components(analysis: Analysis) -> list[Table]:
    parts = [_components_of(kind, component_times(own)) for kind, own in analysis.kinds().items()]
    if parts:
        parts[-1].notes.append(
            "each moment of a request counts for the span that began last; hub: waiting in eventlet's hub; input: "
            "waiting for the data of an upload; client: the client, the network and the server's queue of connections"
        )
    return parts


def _components_of(kind: str, by_level: dict[int, tuple[int, Counter[str]]]) -> Table:
    total: Counter[str] = Counter()
    for _, times in by_level.values():
        total.update(times)
    names = [name for name, _ in total.most_common()]
    rows = []
    for level, (count, times) in by_level.items():
        whole = sum(times.values()) or 1
        cells = (f"{_ms(times[name] / count)} ({times[name] / whole:.0%})" for name in names)
        rows.append([components.level_name(level), str(count), *cells])
    caption = f"Time by component, {kind}: mean ms, by the requests in flight"
    return Table(caption, ["in flight", "requests", *names], rows if names else [])


# States.


def _states(analysis: Analysis) -> list[Table]:
    parts = []
    for kind, own in analysis.kinds().items():
        times = state_times(own)
        together = sum(map(sum, times.values())) or 1
        last = Counter(each.state for each in own if each.outcome != OK)
        rows = [
            [state, str(len(figures)), *_percentile_cells(figures), f"{sum(figures) / together:.1%}", str(last[state])]
            for state, figures in times.items()
        ]
        rows += [
            [state, "0", *_percentile_cells([]), EMPTY, str(count)]
            for state, count in sorted(last.items())
            if state not in times
        ]
        head = ["state", "requests", *_percentile_heads(), "of all time", "ended badly in it"]
        parts.append(Table(f"States of {kind}", head, rows))
    return parts


# Commands.


def _commands(analysis: Analysis) -> list[Table]:
    """The programs that were run, and how they ended."""
    rows = []
    for program, own in analysis.programs().items():
        codes = Counter(span.values["code"] for span in own if span.values.get("code"))
        ends = ", ".join(f"{code} ({count})" for code, count in codes.most_common())
        times = [span.duration for span in own]
        rows.append([program, str(len(own)), str(sum(map(commands.failed, own))), ends, *_percentile_cells(times)])
    head = ["program", "commands", "failed", "exit statuses but 0", *_percentile_heads()]
    return [Table("Commands by program", head, rows)] if rows else []


def count(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


# Errors.


def _errors(analysis: Analysis) -> list[Table]:
    causes = Counter(analysis.causes.values())
    rows = [
        [g.component, g.error, g.category, str(g.count), str(g.recovered or EMPTY), g.request or EMPTY]
        for g in analysis.groups
    ]
    head = ["component", "error", "category", "count", "recovered", "such as in"]
    why = [[category, str(count)] for category, count in causes.most_common()]
    return [
        Table("Why requests failed or were aborted", ["category", "requests"], why),
        Table("Errors by component", head, rows),
    ]


# Clocks and the data.


def _clocks(analysis: Analysis) -> list[Table]:
    alignment = analysis.alignment
    if len(alignment.corrections) < 2:
        return []
    rows = [_clock(each) for each in alignment.corrections.values()]
    head = ["clock", "set by", "messages", "offset ms", "between ms", "drift ppm"]
    notes = [
        f"{alignment.messages} messages between clocks; by the wall clocks {alignment.wrong_before} of them arrived "
        f"before they were sent, by up to {_ms(alignment.worst_before)} ms; with the corrections, of those that can be "
        f"true none by more than {_ms(alignment.residual)} ms",
        "between: what the messages allow; open: they do not say, and the wall clock is believed as far as they let it",
    ]
    return [Table("Corrections of the clocks", head, rows, notes)]


def _clock(each: Correction) -> list[str]:
    if each.reference == each.clock:
        return [each.clock, "itself", str(each.messages), "0", EMPTY, "0"]
    edges = ["open" if edge is None else f"{edge / 1e6:.3f}" for edge in (each.low, each.high)]
    return [
        each.clock,
        each.reference,
        str(each.messages),
        f"{each.offset / 1e6:.3f}",
        " to ".join(edges),
        f"{each.drift * 1e6:.1f}",
    ]


def _data(analysis: Analysis) -> list[Table]:
    counts = analysis.trace.counts
    rows = [[name, str(count)] for name, count in counts.items() if count]
    parts = [Table("What was read", ["", "number"], rows)]
    wrong: list[tuple[str, Sequence[object]]] = [
        ("Files", analysis.trace.problems),
        ("Impossible on one clock", analysis.impossible),
        ("Messages that no clocks make possible", analysis.alignment.contradictions),
    ]
    for name, found in wrong:
        more = [f"and {len(found) - MOST} more"] if len(found) > MOST else []
        parts.append(Table(f"{name}: {len(found)}", ["problem"], [[str(each)] for each in found[:MOST]], more))
    return parts


# One request.


def timeline(request: Request) -> Table:
    """All spans of a request and its states, in the order of time."""
    entries: list[tuple[int, int, list[str]]] = []
    for stay in request.stays:
        entries.append((stay.start, 0, [f"state: {stay.state}", EMPTY, _ms(stay.duration), "", ""]))
    depth = depths(request)
    for order, span in enumerate(request.spans, 1):
        indent = "\u2007" * 2 * depth[id(span)]
        cells = [indent + span.name, span.process.title, _ms(span.finish - span.start), *_said(span)]
        entries.append((span.start, order, cells))
    entries.sort(key=lambda each: each[:2])
    rows = [[f"{(start - request.start) / 1e6:.3f}", *cells] for start, _, cells in entries]
    head = ["at ms", "what", "where", "ms", "outcome", "values"]
    status = f", status {request.status}" if request.status else ""
    notes = [f"{request.concurrency:.1f} requests in flight on average; ended in state {request.state!r}"]
    notes += [f"unexpected: {each}" for each in request.unexpected]
    return Table(f"{request.title}: {request.outcome}{status}, {_ms(request.duration)} ms", head, rows, notes)


def depths(request: Request) -> dict[int, int]:
    """How far within others each span is; what a server does is within its client's request."""
    depths: dict[int, int] = {}
    for span in request.spans:
        depth = sum(1 for _ in span.around())
        if request.client is not None and span.process is not request.client.process:
            depth += 1
        depths[id(span)] = depth
    return depths


def _said(span: Span) -> tuple[str, str]:
    told = ("outcome", "clock", "request", "global")
    shown = ", ".join(f"{name} {value}" for name, value in span.values.items() if name not in told)
    return span.text("outcome") or EMPTY, shown
