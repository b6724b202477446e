"""The report as tables for a terminal, of the figures of :meth:`fastio.trace.analysis.analysis.Analysis.to_dict`."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from fastio.tables import EMPTY, Table, number
from fastio.trace.analysis.analysis import OUTCOMES, PERCENTILES

#: Rows of a list of what is wrong; the rest is counted.
MOST = 20
_TIMES = [*(f"p{part}" for part in PERCENTILES), "max"]
_HEADS = [f"{name} ms" for name in _TIMES]


def lead(figures: Mapping[str, Any]) -> list[str]:
    """Lines that come first: how many requests there were, and how they ended."""
    counts, kinds, programs = Counter(figures["counts"]), figures["kinds"].values(), figures["commands"].values()
    outcomes = {each: sum(kind[each] for kind in kinds) for each in OUTCOMES}
    said = ", ".join(f"{number} {each}" for each, number in outcomes.items() if number)
    ran, failed = sum(each["commands"] for each in programs), sum(each["failed"] for each in programs)
    about = [f"{count(sum(outcomes.values()), 'request')}: {said}"] if kinds else []
    about += [f"{count(ran, 'command')}: {ran - failed} ok, {failed} failed"] if ran else []
    lines = [
        "; ".join(about) or "no requests and no commands",
        f"  * {count(counts['spans'], 'span')} of {count(counts['processes'], 'process', 'processes')} on "
        f"{count(counts['hosts'], 'host')}, in {count(counts['files'], 'file')}",
    ]
    if counts["lost spans"]:
        lines.append(f"  * {counts['lost spans']} spans were lost while recording")
    if figures["problems"]:
        lines.append("  * not all of the data is sound: see the last table")
    return lines


def tables(figures: Mapping[str, Any]) -> list[Table]:
    """All tables that have rows."""
    parts = (*_requests(figures), *_states(figures), *_errors(figures), _clocks(figures))
    return [each for each in (*parts, *_data(figures)) if each.rows]


def count(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def _times(seconds: Mapping[str, float]) -> list[str]:
    return [number(seconds[name] * 1e3) if seconds else EMPTY for name in _TIMES]


def _pairs(found: Mapping[str, int]) -> list[list[str]]:
    return [[name, str(times)] for name, times in found.items()]


def _requests(figures: Mapping[str, Any]) -> Iterable[Table]:
    head = ["kind", "requests", *OUTCOMES, "success", *_HEADS, "MB/s"]
    rows = [[name, *_rates(own)] for name, own in figures["kinds"].items()]
    yield Table("Requests by kind", head, rows, ["times of those that are ok"])
    unexpected = dict(list(figures["unexpected events"].items())[:MOST])
    yield Table("Events that the states do not allow for", ["event", "times"], _pairs(unexpected))


def _rates(own: Mapping[str, Any]) -> list[str]:
    seconds, moved = own["seconds"], own["bytes"] / 1e6
    return [
        str(own["requests"]),
        *(str(own[each]) for each in OUTCOMES),
        f"{own['ok'] / own['requests']:.1%}",
        *_times(seconds),
        number(moved / seconds["sum"]) if moved and seconds["sum"] else EMPTY,
    ]


def _states(figures: Mapping[str, Any]) -> Iterable[Table]:
    for kind, own in figures["kinds"].items():
        together = sum(each.get("sum", 0) for each in own["states"].values()) or 1
        rows = []
        for state, each in own["states"].items():
            times = each if each["count"] else {}
            share = f"{times['sum'] / together:.1%}" if times else EMPTY
            rows.append([state, str(each["count"]), *_times(times), share, str(each["ended badly"])])
        yield Table(f"States of {kind}", ["state", "requests", *_HEADS, "of all time", "ended badly in it"], rows)


def _errors(figures: Mapping[str, Any]) -> Iterable[Table]:
    rows = [
        [
            program, str(own["commands"]), str(own["failed"]),
            ", ".join(f"{code} ({times})" for code, times in own["exit statuses but 0"].items()),
            *_times(own["seconds"]),
        ]
        for program, own in figures["commands"].items()
    ]  # fmt: skip
    yield Table("Commands by program", ["program", "commands", "failed", "exit statuses but 0", *_HEADS], rows)
    yield Table("Why requests failed or were aborted", ["category", "requests"], _pairs(figures["causes"]))
    head = ["component", "error", "category", "count", "recovered", "such as in"]
    yield Table(
        "Errors by component", head, [[str(each[name] or EMPTY) for name in head] for each in figures["errors"]]
    )


def _clocks(figures: Mapping[str, Any]) -> Table:
    found, messages = figures["clocks"], figures["messages"]
    head = ["clock", "set by", "messages", "offset ms", "between ms", "drift ppm"]
    notes = [
        f"{messages['between clocks']} messages between clocks; by the wall clocks "
        f"{messages['wrong by the wall clocks']} of them arrived before they were sent, by up to "
        f"{number(messages['worst_s'] * 1e3)} ms; with the corrections, of those that can be true none by more than "
        f"{number(messages['residual_s'] * 1e3)} ms",
        "between: what the messages allow; open: they do not say, and the wall clock is believed as far as they let it",
    ]
    return Table("Corrections of the clocks", head, [_clock(each) for each in found] if len(found) > 1 else [], notes)


def _clock(each: Mapping[str, Any]) -> list[str]:
    if each["reference"] == each["clock"]:
        return [each["clock"], "itself", str(each["messages"]), "0", EMPTY, "0"]
    edges = ["open" if edge is None else f"{edge * 1e3:.3f}" for edge in (each["low_s"], each["high_s"])]
    offset, drift = f"{each['offset_s'] * 1e3:.3f}", f"{each['drift_ppm']:.1f}"
    return [each["clock"], each["reference"], str(each["messages"]), offset, " to ".join(edges), drift]


def _data(figures: Mapping[str, Any]) -> Iterable[Table]:
    yield Table(
        "Records read", ["", "number"], _pairs({name: times for name, times in figures["counts"].items() if times})
    )
    wrong = figures["problems"]
    more = [f"and {len(wrong) - MOST} more"] if len(wrong) > MOST else []
    yield Table(f"Unreadable or impossible: {len(wrong)}", ["problem"], [[each] for each in wrong[:MOST]], more)
