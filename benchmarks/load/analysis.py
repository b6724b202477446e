"""Figures from the records of a run. It reads files only, so it can be done again, later on, and elsewhere.

Warm-up and tail are cut as the benchmark warp cuts them: what counts is the time from when every user has finished an
operation until the first one starts its last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy

from benchmarks.harness import statistics
from benchmarks.load import Wrong, files, records
from benchmarks.load import plan as plans
from benchmarks.load.content import WRONG
from benchmarks.load.plan import Plan

PERCENTILES = (50, 90, 99, 99.9)
#: Errors that are counted by their whole text.
DIFFERENT_ERRORS = 100

#: Phases of an operation -> from which of the recorded moments to which.
PHASES = {
    "sent": ("start", "sent"),
    "response": ("sent", "first_byte"),
    "first_byte": ("start", "first_byte"),
    "transfer": ("first_byte", "end"),
    "whole": ("start", "end"),
    # A service that stalls also delays requests that have not begun, which the time from the start does not show.
    "from_due": ("due", "end"),
}


#: An operation, in a small fraction of the memory that objects would take. ``user`` differs for all users of all
#: workers, ``wrong`` means that other bytes came than were written: it has failed as well. Times are in seconds since
#: the first operation was to start; NaN where a phase was not reached, and for ``due`` (when it was to start) in a
#: closed loop.
_ROW = numpy.dtype([
    ("kind", "U8"), ("number", "q"), ("user", "q"), ("start", "d"), ("sent", "d"), ("first_byte", "d"), ("end", "d"),
    ("bytes", "q"), ("status", "q"), ("failed", "?"), ("wrong", "?"), ("due", "d"),
])  # fmt: skip


class Operations(numpy.recarray):
    """Operations; the fields of :data:`_ROW` are columns."""

    def milliseconds(self, phase: str) -> numpy.ndarray:
        """How long a phase of :data:`PHASES` took, of those that went well."""
        begin, end = (self[moment] for moment in PHASES[phase])
        taken = (end - begin)[~self.failed] * 1000
        return taken[~numpy.isnan(taken)]

    @property
    def open(self) -> bool:
        """Whether they were due at a rate."""
        return bool(len(self)) and not numpy.isnan(self.due).any()

    @property
    def begin(self) -> numpy.ndarray:
        """When each of them was to start, or did in a closed loop."""
        return self.due if self.open else self.start


@dataclass
class Run:
    """The record of a run."""

    directory: Path
    plan: Plan
    #: seconds since the epoch of the first operation
    started: float
    #: report of each worker
    workers: list[dict[str, Any]]
    operations: Operations
    #: why the records may not tell all
    doubts: list[str] = field(default_factory=list)
    #: error -> how often it occurred
    errors: dict[str, int] = field(default_factory=dict)


class Window(NamedTuple):
    """The part of a run that counts, in seconds since its first operation."""

    begin: float
    end: float
    #: False if the run was too short for that: all of it counts then
    cut: bool

    @property
    def seconds(self) -> float:
        return self.end - self.begin


def read(directory: Path) -> Run:
    """The run in a directory.

    :raises Wrong: if there is none, or it has no operations
    """
    summary = files.read(directory / records.SUMMARY, "run of a load", records.RUN_FORMAT, records.RUN_VERSION)
    doubts: list[str] = []
    errors: dict[str, int] = {}
    try:
        plan = plans.from_dict(summary["plan"])
        rows = numpy.fromiter(_rows(directory, summary["workers"], doubts, errors), _ROW).view(type=Operations)
    except (KeyError, TypeError, Wrong) as error:
        raise Wrong(f"{directory}: {error}") from error
    if not len(rows):
        raise Wrong(f"{directory}: not a single operation was recorded")
    if plan.total and not plan.seconds and len(rows) < plan.total:
        doubts.append(f"only {len(rows)} of {plan.total} operations were carried out")
    # As they were recorded: seconds by which it was late, and since its start.
    rows["due"] = numpy.where(rows.due < 0, numpy.nan, rows.start - rows.due)
    started = float(numpy.fmin(rows.start, rows.due).min())
    rows["due"] -= started
    rows["start"] -= started
    for moment in ("sent", "first_byte", "end"):
        rows[moment] = numpy.where(rows[moment] < 0, numpy.nan, rows.start + rows[moment])
    return Run(directory, plan, started, summary["workers"], rows, doubts, errors)


def _rows(
    directory: Path, workers: Sequence[dict[str, Any]], doubts: list[str], errors: dict[str, int]
) -> Iterator[tuple[Any, ...]]:
    """The operations of all workers; what is wrong is added to ``doubts`` and ``errors``."""
    for worker in workers:
        path = directory / records.file_name(worker["worker"])
        if worker["lost"]:
            doubts.append(f"worker {worker['worker']} was lost: what it did is missing, or some of it")
        if worker.get("exceptions"):
            doubts.append(f"worker {worker['worker']}: {worker['exceptions'][0]}")
        if not path.exists():
            continue
        for record in records.read(path):
            user, start = worker["worker"] << 32 | record.user, record.start - worker["clock_offset"]
            wrong = record.error.startswith(WRONG)
            yield (record.operation, record.number, user, start, *record[4:9], bool(record.error), wrong, record.late)
            if record.error:
                _count(errors, record.error)


def _count(errors: dict[str, int], error: str) -> None:
    """Count an error; if servers tell the number of a request in it, by its kind as soon as there are many."""
    if error not in errors and len(errors) >= DIFFERENT_ERRORS:
        error = f"{error.partition(':')[0]}: and others"
    errors[error] = errors.get(error, 0) + 1


def everything(operations: Operations) -> Window:
    """From the first start to the last end: for work whose costs and time are to be those of all of it."""
    return Window(0.0, float(operations.end.max()), True)


def window(operations: Operations) -> Window:
    """From when every user has finished one operation until the first starts its last.

    In an open loop it is the time in which operations were due. Their rate is the same from the first to the last, and
    those who still wait at the end count as well.
    """
    if operations.open:
        return Window(0.0, float(operations.due.max()) or 1.0, True)
    users, user = numpy.unique(operations.user, return_inverse=True)
    first_end, last_start = numpy.full(len(users), numpy.inf), numpy.full(len(users), -numpy.inf)
    numpy.minimum.at(first_end, user, operations.end)
    numpy.maximum.at(last_start, user, operations.start)
    begin, end = float(first_end.max()), float(last_start.min())
    # Of a part in which nothing began there would be no times.
    if ((operations.start >= begin) & (operations.start < end)).any():
        return Window(begin, end, True)
    return Window(0.0, float(operations.end.max()), False)


def begun_within(operations: Operations, part: Window) -> Operations:
    """The operations whose start counts, or in an open loop the moment at which they were due."""
    begin = operations.begin
    chosen = (begin >= part.begin) & (begin <= part.end if operations.open else begin < part.end)
    return operations[chosen].view(type=Operations)


def within(operations: Operations, part: Window) -> tuple[float, float]:
    """The bytes that were moved in a part of a run, and the operations that were done; of those that went well.

    One that is not all in it counts in proportion.
    """
    well = operations[~operations.failed]
    # An operation that took no time by the clock would have an infinite rate.
    lengths = numpy.maximum(well.end - well.start, 1e-9)
    inside = numpy.minimum(well.start + lengths, part.end) - numpy.maximum(well.start, part.begin)
    shares = numpy.maximum(inside, 0) / lengths
    return float((well.bytes * shares).sum()), float(shares.sum())


def percentiles(operations: Operations, phase: str) -> dict[str, float]:
    """``p50`` and so on of a phase, in milliseconds; empty if nothing went well."""
    taken = operations.milliseconds(phase)
    if not len(taken):
        return {}
    return {f"p{each:g}": float(figure) for each, figure in zip(PERCENTILES, numpy.percentile(taken, PERCENTILES),
                                                              strict=True)}  # fmt: skip


def generator_cpu(run: Run, part: Window) -> float:
    """The share of a processor that the busiest worker used in the part: that of the 90th of a hundred seconds."""
    shares = [0.0]
    for worker in run.workers:
        offset = run.started + worker["clock_offset"]
        within = [share for moment, share in worker.get("cpu", []) if part.begin <= moment - offset <= part.end + 1]
        # A run of less than a second has one sample, of all of it.
        taken: Sequence[float] = within or [share for _, share in worker.get("cpu", [])]
        if taken:
            shares.append(float(numpy.percentile(taken, 100 * (1 - statistics.TOLERATED))))
    return max(shares)
