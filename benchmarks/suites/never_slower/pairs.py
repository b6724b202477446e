"""Pairs of a run without and one with fastio, or a trace, cell by cell, until it is clear whether that is slower.

A cell is a size, a number of concurrent calls, and a number of other processes that compute. The two sides are
processes that go on from cell to cell. A batch of calls is timed, as many on both sides. The batches of a pair
follow each other, and who is first alternates, so both see the same load of the machine. A cell ends when its interval
is at 1 or above, or is too narrow for more than a percent of loss, or when its time is over.

Two processes of the same program may differ for their whole life, by where their memory is for example. A cell that
looks slower is therefore measured again, in new processes and for twice the time. It is slower only if it is so both
times.
"""

import contextlib
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from benchmarks.harness.modes import KIB
from benchmarks.harness.statistics import LEAST_PAIRS, Interval, paired_ratio

#: Sizes of small data.
SMALL = (KIB, 64 * KIB)
#: Of large data, each of many concurrent calls has this part.
SHARE = 16
#: Seconds that a batch takes at least, and the most calls in it.
BATCH, MOST_CALLS = 0.03, 500
#: The ends of an interval that says that nothing worth mention is lost.
NARROW = 0.99
#: The figures of a record have so many digits.
DIGITS = 4

SLOWER, NOT_SLOWER, UNDECIDED = "slower", "not slower", "too few pairs"


#: A process that computes. It ends by itself once whoever started it is gone, however that ended.
_NEIGHBOUR = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    for _ in range(1_000_000):
        pass
"""


@contextlib.contextmanager
def neighbours(count: int) -> Iterator[list[int]]:
    """Processes that compute within the block, each as much as it gets; yields their numbers."""
    with contextlib.ExitStack() as stack:
        pids = []
        for _ in range(count):
            command = [sys.executable, "-S", "-c", _NEIGHBOUR, str(os.getpid())]
            process = stack.enter_context(subprocess.Popen(command))
            stack.callback(process.kill)
            pids.append(process.pid)
        yield pids


class Cell(NamedTuple):
    """The conditions of a batch of calls.

    :param size: bytes of each call's data
    :param large: whether it is large data
    """

    size: int
    at_once: int
    busy: int
    large: bool


class Side(Protocol):
    """One of the two processes."""

    def batch(self, size: int, at_once: int, calls: int) -> float:
        """Seconds of so many calls by each of so many at once."""

    def check(self, size: int, at_once: int) -> bool:
        """Whether the bytes are right, of one call by each."""


#: The two sides by name: what is compared with, and what is compared.
Sides = Mapping[str, Side]


def cells(parameters: Mapping[str, Any]) -> list[Cell]:
    """Those that there are; all of an idle machine first."""
    found = []
    for beside, at_once in itertools.product({0: 0, parameters["busy"]: 0}, {1: 0, parameters["many"]: 0}):
        for size in () if parameters.get("traced") else SMALL:
            found.append(Cell(size, at_once, beside, False))
        found.append(Cell(large(parameters["size"], at_once), at_once, beside, True))
    return found


def large(size: int, at_once: int) -> int:
    """Bytes of each call's large data."""
    return size if at_once == 1 else max(1, size // SHARE)


def sizes(parameters: Mapping[str, Any]) -> list[int]:
    """The sizes of all cells."""
    return sorted({cell.size for cell in cells(parameters)})


class Budget(NamedTuple):
    """How long a cell is measured.

    :param seconds: for its pairs
    :param least: pairs, whatever the time
    :param most: pairs
    """

    seconds: float
    least: int
    most: int = 60


def measure(
    start: Callable[[], AbstractContextManager[Sides]], wanted: Sequence[Cell], budget: Budget
) -> tuple[list[dict[str, Any]], bool]:
    """Measure the cells; returns their records, and whether all bytes were right.

    :param start: starts new sides
    """
    with start() as sides:
        records, right = _measured(sides, wanted, budget)
    doubtful = [(cell, record) for cell, record in zip(wanted, records, strict=True) if verdict(record) == SLOWER]
    if doubtful:
        longer = budget._replace(seconds=2 * budget.seconds)
        with start() as sides:
            again, right_again = _measured(sides, [cell for cell, _ in doubtful], longer)
        for (_, record), other in zip(doubtful, again, strict=True):
            record["again"] = [{name: other[name] for name in ("calls", *sides)}]
        right &= right_again
    return records, right


def _measured(sides: Sides, wanted: Sequence[Cell], budget: Budget) -> tuple[list[dict[str, Any]], bool]:
    records, right = [], True
    for busy, some in itertools.groupby(wanted, lambda cell: cell.busy):
        with neighbours(busy):
            for cell in some:
                right &= all(side.check(cell.size, cell.at_once) for side in sides.values())
                records.append(_cell(sides, cell, budget))
    return records, right


def _cell(sides: Sides, cell: Cell, budget: Budget) -> dict[str, Any]:
    calls = _calls(sides, cell)
    found: dict[str, list[float]] = {name: [] for name in sides}
    begun = time.monotonic()
    for order in itertools.islice(itertools.cycle((list(sides), list(sides)[::-1])), max(budget.most, budget.least)):
        for name in order:
            found[name].append(_rounded(sides[name].batch(cell.size, cell.at_once, calls)))
        if min(map(len, found.values())) >= budget.least and (
            time.monotonic() - begun >= budget.seconds or _decided(paired_ratio(*found.values()))
        ):
            break
    return {**cell._asdict(), "calls": calls, **found}


def _calls(sides: Sides, cell: Cell) -> int:
    """How many a batch has."""
    longest = 0.0
    # The first warms up.
    for _ in range(2):
        longest = max(side.batch(cell.size, cell.at_once, 1) for side in sides.values())
        if longest >= BATCH:
            return 1
    return min(MOST_CALLS, round(BATCH / longest) if longest else MOST_CALLS)


def _rounded(seconds: float) -> float:
    return float(f"{seconds:.{DIGITS}g}")


def _decided(interval: Interval) -> bool:
    return interval.low >= 1 or (interval.low >= NARROW and interval.high >= 1)


def interval(record: Mapping[str, Any]) -> Interval:
    """How many times faster the second side is, of all pairs of a record."""
    without, others = zip(*map(_times, _parts(record)), strict=True)
    return paired_ratio(sum(without, []), sum(others, []))


def verdict(record: Mapping[str, Any]) -> str:
    """Whether the second side is slower: the intervals of all its parts are below 1."""
    parts = [_times(part) for part in _parts(record)]
    if any(len(without) < LEAST_PAIRS for without, _ in parts):
        return UNDECIDED
    below = [paired_ratio(*part).high < 1 for part in parts]
    return SLOWER if all(below) and interval(record).high < 1 else NOT_SLOWER


def _times(part: Mapping[str, Any]) -> list[list[float]]:
    """The seconds of the batches of both sides."""
    return [each for name, each in part.items() if isinstance(each, list) and name != "again"]


def _parts(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The measurements of the same processes."""
    yield record
    yield from record.get("again", [])


def together(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Records of the same cell, of several runs, as one."""
    first, *others = records
    return {**first, "again": [*list(_parts(first))[1:], *(part for other in others for part in _parts(other))]}
