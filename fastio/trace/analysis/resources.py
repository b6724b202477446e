"""What each process used: while it had no request, while it had some, and at most."""

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
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
    #: a growing count; its increase per second is compared
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
            if any(series):
                idle, middle = (median(values) if values else None for values in series)
                found.append(Use(process, figure, idle, middle, max(max(values) for values in series if values)))
    return found


def _series(samples: Sequence[Point], figure: Figure, busy: Sequence[tuple[int, int]]) -> tuple[list, list]:
    """Without requests, and with some."""
    idle: list[float] = []
    loaded: list[float] = []
    for before, sample in zip(samples, samples[1:], strict=False):
        first, last = (number(each.values.get(figure.value)) for each in (before, sample))
        seconds = (sample.monotonic - before.monotonic) / SECOND
        if first is None or last is None or seconds <= 0:
            continue
        if figure.rate and last < first:
            # A counter that was set back, or a line of another process.
            continue
        value = (last - first) / seconds if figure.rate else last
        (loaded if _overlaps(busy, before.time, sample.time) else idle).append(value / figure.scale)
    return idle, loaded


def _overlaps(intervals: Sequence[tuple[int, int]], start: int, finish: int) -> bool:
    index = bisect.bisect_left(intervals, (finish, 0)) - 1
    return index >= 0 and intervals[index][1] > start
