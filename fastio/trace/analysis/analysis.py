"""All of the analysis: from directories to what the views and the exports show."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastio.trace.analysis import clocks, commands, components, failures, messages, reading
from fastio.trace.analysis.clocks import Alignment
from fastio.trace.analysis.failures import Failure, Group
from fastio.trace.analysis.messages import Impossible, Message
from fastio.trace.analysis.model import Span, Trace, TraceError
from fastio.trace.analysis.requests import ABORTED, FAILED, OK, Request, requests

OUTCOMES = (OK, FAILED, ABORTED)
#: Of the requests' durations, and of those of their states.
PERCENTILES = (50, 90, 99)


@dataclass
class Analysis:
    """What is known of the trace."""

    trace: Trace
    messages: list[Message]
    alignment: Alignment
    impossible: list[Impossible]
    requests: list[Request]
    #: the spans of all commands, in the order of their beginnings
    commands: list[Span]
    failures: list[Failure]
    groups: list[Group]
    #: the category of each request that failed, by its ``id()``
    causes: dict[int, str]

    @property
    def sound(self) -> bool:
        """Whether all files could be read, and nothing in them is impossible."""
        return not (self.trace.problems or self.impossible or self.alignment.contradictions)

    def request(self, name: str) -> list[Request]:
        """The requests with this id, global id or id of a trace, or with this beginning of an id.

        :raises TraceError: if there is none
        """
        exact = [each for each in self.requests if name in (each.id, each.global_id, each.trace)]
        found = exact or [each for each in self.requests if each.id.startswith(name)]
        if not found:
            known = ", ".join(each.id for each in self.requests[:3]) or "none at all"
            raise TraceError(f"--request {name}: there is no such request; the first are {known}")
        return found

    def kinds(self) -> dict[str, list[Request]]:
        """The requests by their kind; the most frequent first."""
        found: dict[str, list[Request]] = {}
        for each in self.requests:
            found.setdefault(each.kind.name, []).append(each)
        return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))

    def programs(self) -> dict[str, list[Span]]:
        """The commands by the name of their program, in the order in which each was first run."""
        found: dict[str, list[Span]] = {}
        for each in self.commands:
            found.setdefault(commands.program(each), []).append(each)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as ``--json`` prints it; times are in seconds."""
        return {
            "counts": dict(self.trace.counts),
            "problems": [str(each) for each in self.trace.problems],
            "impossible": [str(each) for each in (*self.impossible, *self.alignment.contradictions)],
            "clocks": [_clock(each) for each in self.alignment.corrections.values()],
            "messages": {
                "between clocks": self.alignment.messages,
                "wrong by the wall clocks": self.alignment.wrong_before,
                "worst_s": self.alignment.worst_before / 1e9,
                "residual_s": self.alignment.residual / 1e9,
            },
            "kinds": {name: _kind(own) for name, own in self.kinds().items()},
            "commands": {name: _program(own) for name, own in self.programs().items()},
            "components": {
                str(level): {name: time / 1e9 for name, time in times.items()}
                for level, (_, times) in component_times(self.requests).items()
            },
            "causes": dict(Counter(self.causes.values()).most_common()),
            "errors": [
                {"component": e.component, "error": e.error, "category": e.category, "count": e.count}
                for e in self.groups
            ],
        }  # fmt: skip


def analyse(paths: Iterable[str | Path]) -> Analysis:
    """Read and analyse the files in these directories.

    :raises TraceError: if there is nothing to read, or a library is missing
    """
    paths = list(paths)
    trace = reading.read(paths)
    sent = messages.messages(trace)
    alignment = clocks.align(trace, sent)
    found = requests(trace)
    failed = failures.failures(trace, found)
    return Analysis(
        trace,
        sent,
        alignment,
        messages.impossible(trace, sent),
        found,
        commands.commands(trace),
        failed,
        failures.groups(failed),
        failures.causes(found, failed),
    )


def percentile(figures: Sequence[float], part: float) -> float:
    """Between the two nearest figures, of at least one."""
    ordered = sorted(figures)
    place = (len(ordered) - 1) * part / 100
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def state_times(found: Iterable[Request]) -> dict[str, list[int]]:
    """For each state, in the order of the table, what the requests spent in it: ns, once for each request."""
    order: dict[str, None] = {}
    times: dict[str, list[int]] = {}
    for request in found:
        order.update(dict.fromkeys(request.kind.machine.states))
        own: Counter[str] = Counter()
        for stay in request.stays:
            own[stay.state] += stay.duration
        for state, time in own.items():
            times.setdefault(state, []).append(time)
    return {state: times[state] for state in order if state in times}


def component_times(found: Iterable[Request]) -> dict[int, tuple[int, Counter[str]]]:
    """By the number of requests in flight: how many requests, and their time in each component together in ns."""
    made: dict[int, tuple[int, Counter[str]]] = {}
    for request in found:
        level = components.level(request.concurrency)
        count, times = made.get(level, (0, Counter()))
        times.update(components.times(request))
        made[level] = (count + 1, times)
    return dict(sorted(made.items()))


def _clock(each: clocks.Correction) -> dict[str, Any]:
    return {
        "clock": each.clock,
        "reference": each.reference,
        "offset_s": each.offset / 1e9,
        "low_s": None if each.low is None else each.low / 1e9,
        "high_s": None if each.high is None else each.high / 1e9,
        "drift_ppm": each.drift * 1e6,
        "messages": each.messages,
    }


def _kind(own: Sequence[Request]) -> dict[str, Any]:
    outcomes = Counter(each.outcome for each in own)
    times = [each.duration for each in own if each.outcome == OK]
    return {
        "requests": len(own),
        **{outcome: outcomes[outcome] for outcome in OUTCOMES},
        "other attempts": sum(each.attempt for each in own),
        "retries": sum(each.retries for each in own),
        "unexpected events": sum(len(each.unexpected) for each in own),
        "seconds": _percentiles(times),
        "states": {
            state: {"count": len(figures), **_percentiles(figures)} for state, figures in state_times(own).items()
        },
    }


def _program(own: Sequence[Span]) -> dict[str, Any]:
    return {
        "commands": len(own),
        "failed": sum(map(commands.failed, own)),
        "seconds": _percentiles([span.duration for span in own]),
    }


def _percentiles(figures: Sequence[int]) -> dict[str, float]:
    if not figures:
        return {}
    found = {f"p{part}": percentile(figures, part) / 1e9 for part in PERCENTILES}
    return {**found, "max": max(figures) / 1e9, "sum": sum(figures) / 1e9}
