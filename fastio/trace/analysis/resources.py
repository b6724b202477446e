"""What each process used: while it had no request, while it had some, and at most."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from fastio.trace.analysis.model import SECOND, Point, Process, Trace, number
from fastio.trace.analysis.requests import Request, in_flight

SAMPLE = "process.resources"


@dataclass(frozen=True)
class Figure:
    """A quantity: how it is called, in what, and how it comes out of the samples."""

    name: str
    unit: str
    value: str
    #: the unit's size
    scale: float
    #: a growing count, of which its increase per second is looked at
    rate: bool


FIGURES = (
    Figure("CPU", "%", "cpu_s", 0.01, True),
    Figure("memory", "MiB", "rss", 1 << 20, False),
    Figure("threads", "", "threads", 1, False),
    Figure("descriptors", "", "fds", 1, False),
    Figure("read", "MB/s", "read", 1e6, True),
    Figure("written", "MB/s", "write", 1e6, True),
    Figure("network sent (host)", "MB/s", "net_sent", 1e6, True),
    Figure("network received (host)", "MB/s", "net_received", 1e6, True),
)


@dataclass
class Use:
    """One quantity of one process; None where no sample says it."""

    process: Process
    figure: Figure
    #: median without requests, median with requests, the most
    idle: float | None
    middle: float | None
    peak: float


@dataclass
class _Series:
    idle: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)


def uses(trace: Trace, requests: Sequence[Request]) -> list[Use]:
    """All quantities of all processes that have samples of them."""
    found = []
    for process in trace.processes:
        samples = sorted((each for each in process.points if each.name == SAMPLE), key=lambda each: each.monotonic)
        if not samples:
            continue
        busy = in_flight(requests, process)
        for figure in FIGURES:
            series = _series(samples, figure, busy)
            values = series.idle + series.busy
            if values:
                idle, middle = (median(part) if part else None for part in (series.idle, series.busy))
                found.append(Use(process, figure, idle, middle, max(values)))
    return found


def _series(samples: Sequence[Point], figure: Figure, busy: Sequence[tuple[int, int]]) -> _Series:
    series = _Series()
    for before, sample in zip(samples, samples[1:], strict=False):
        first, last = (number(each.values.get(figure.value)) for each in (before, sample))
        seconds = (sample.monotonic - before.monotonic) / SECOND
        if first is None or last is None or seconds <= 0:
            continue
        if figure.rate and last < first:
            # A counter that was set back, or a line of another process.
            continue
        value = (last - first) / seconds if figure.rate else last
        overlaps = _overlaps(busy, before.time, sample.time)
        (series.busy if overlaps else series.idle).append(value / figure.scale)
    return series


def _overlaps(intervals: Sequence[tuple[int, int]], start: int, finish: int) -> bool:
    index = bisect.bisect_left(intervals, (finish, 0)) - 1
    return index >= 0 and intervals[index][1] > start
