"""All of the analysis: from directories to what the tables and lists show."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastio.trace.analysis import clocks, commands, failures, messages, reading
from fastio.trace.analysis.clocks import Alignment
from fastio.trace.analysis.failures import Failure
from fastio.trace.analysis.model import Span, Trace, TraceError
from fastio.trace.analysis.requests import ABORTED, FAILED, OK, Request, requests

OUTCOMES = (OK, FAILED, ABORTED)
#: Of the requests' durations, and of those of their states.
PERCENTILES = (50, 90, 99)


@dataclass
class Analysis:
    """The result of the analysis of a trace."""

    trace: Trace
    alignment: Alignment
    #: events in the wrong order on one clock
    impossible: list[str]
    requests: list[Request]
    #: the spans of all commands, in the order of their beginnings
    commands: list[Span]
    failures: list[Failure]
    #: the category of each request that failed, by its ``id()``
    causes: dict[int, str]

    @property
    def problems(self) -> list[str]:
        """Unreadable lines, and contradictions."""
        return [*map(str, self.trace.problems), *self.impossible, *map(str, self.alignment.contradictions)]

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

    def to_dict(self) -> dict[str, Any]:
        """All figures, as ``--json`` prints them and the tables show them; times are in seconds."""
        programs: dict[str, list[Span]] = {}
        for span in self.commands:
            programs.setdefault(commands.program(span), []).append(span)
        unexpected = Counter(f"{each.kind.name}: {what}" for each in self.requests for what in each.unexpected)
        return {
            "counts": dict(self.trace.counts),
            "problems": self.problems,
            "clocks": [_clock(each) for each in self.alignment.corrections.values()],
            "messages": {
                "between clocks": self.alignment.messages,
                "wrong by the wall clocks": self.alignment.wrong_before,
                "worst_s": self.alignment.worst_before / 1e9,
                "residual_s": self.alignment.residual / 1e9,
            },
            "kinds": {name: _kind(own) for name, own in self.kinds().items()},
            "unexpected events": dict(unexpected.most_common()),
            "commands": {name: _program(own) for name, own in programs.items()},
            "causes": dict(Counter(self.causes.values()).most_common()),
            "errors": failures.errors(self.failures),
        }


def analyse(paths: Iterable[str | Path]) -> Analysis:
    """Read and analyse the files in these directories.

    :raises TraceError: if there is nothing to read, or a library is missing
    """
    trace = reading.read(list(paths))
    sent = messages.messages(trace)
    alignment = clocks.align(trace, sent)
    found = requests(trace)
    failed = failures.failures(trace, found)
    impossible = list(messages.impossible(trace, sent))
    causes = failures.causes(found, failed)
    return Analysis(trace, alignment, impossible, found, commands.commands(trace), failed, causes)


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
    times = state_times(own)
    outcomes = Counter(each.outcome for each in own)
    last = Counter(each.state for each in own if each.outcome != OK)
    well = [each for each in own if each.outcome == OK]
    return {
        "requests": len(own),
        **{outcome: outcomes[outcome] for outcome in OUTCOMES},
        "bytes": sum(each.bytes for each in well),
        "seconds": _percentiles([each.duration for each in well]),
        "states": {
            state: {"count": len(figures), "ended badly": last[state], **_percentiles(figures)}
            for state, figures in {**times, **{state: [] for state in sorted(last) if state not in times}}.items()
        },
    }


def _program(own: Sequence[Span]) -> dict[str, Any]:
    codes = Counter(str(span.values["code"]) for span in own if span.values.get("code"))
    return {
        "commands": len(own),
        "failed": sum(map(commands.failed, own)),
        "exit statuses but 0": dict(codes.most_common()),
        "seconds": _percentiles([span.duration for span in own]),
    }


def _percentiles(figures: Sequence[int]) -> dict[str, float]:
    if not figures:
        return {}
    found = {f"p{part}": percentile(figures, part) / 1e9 for part in PERCENTILES}
    return {**found, "max": max(figures) / 1e9, "sum": sum(figures) / 1e9}
