"""What the records of a run say. It reads files only, so it can be done again, later on, and elsewhere.

Warm-up and tail are cut as the benchmark warp cuts them: what counts is the time from when every user has finished an
operation until the first one starts its last. Within it the operations are divided into segments of a second each.
"""

from __future__ import annotations

import array
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy

from benchmarks.harness import statistics
from benchmarks.load import plan as plans
from benchmarks.load import records
from benchmarks.load.plan import Plan, PlanError

SUMMARY = "run.json"
FORMAT = "fastio-load-run"
VERSION = 1

#: Seconds of a segment.
SEGMENT = 1.0
PERCENTILES = (50, 90, 99)
#: Errors that are counted by their whole text.
DIFFERENT_ERRORS = 100

#: Phases of an operation -> from which of the recorded moments to which.
PHASES = {
    "sent": ("start", "sent"),
    "response": ("sent", "first_byte"),
    "first_byte": ("start", "first_byte"),
    "transfer": ("first_byte", "end"),
    "whole": ("start", "end"),
}


class RunError(ValueError):
    """A directory that does not hold a run, or one that this program can not read."""


@dataclass
class Operations:
    """Operations as columns. Times are in seconds since the first one's start; NaN where a phase was not reached."""

    kind: numpy.ndarray
    number: numpy.ndarray
    #: of the user, different for all users of all workers
    user: numpy.ndarray
    start: numpy.ndarray
    sent: numpy.ndarray
    first_byte: numpy.ndarray
    end: numpy.ndarray
    bytes: numpy.ndarray
    status: numpy.ndarray
    failed: numpy.ndarray

    def __len__(self) -> int:
        return len(self.start)

    def only(self, chosen: numpy.ndarray) -> Operations:
        """Those for which ``chosen`` is true."""
        return Operations(**{name: column[chosen] for name, column in vars(self).items()})

    def milliseconds(self, phase: str) -> numpy.ndarray:
        """How long a phase of :data:`PHASES` took, of those that went well."""
        begin, end = (getattr(self, moment) for moment in PHASES[phase])
        return (end - begin)[~self.failed] * 1000


@dataclass
class Run:
    """A run, as it was recorded."""

    directory: Path
    plan: Plan
    #: seconds since the epoch of the first operation
    started: float
    #: what each worker said of itself
    workers: list[dict[str, Any]]
    operations: Operations
    #: why the records may not tell all
    doubts: list[str] = field(default_factory=list)
    #: what went wrong -> how often
    errors: dict[str, int] = field(default_factory=dict)


class Window(NamedTuple):
    """The part of a run that counts, in seconds since its first operation."""

    begin: float
    end: float
    #: False if the run was too short: all of it counts then
    cut: bool

    @property
    def seconds(self) -> float:
        return self.end - self.begin


def read(directory: Path) -> Run:
    """The run in a directory.

    :raises RunError: if there is none, or it has no operations
    """
    try:
        summary = json.loads((directory / SUMMARY).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{directory}: no run of a load: {error}") from error
    if not isinstance(summary, dict) or summary.get("format") != FORMAT:
        raise RunError(f"{directory / SUMMARY}: no run of a load (no format {FORMAT!r} in it)")
    if summary.get("version") != VERSION:
        raise RunError(f"{directory / SUMMARY}: version {summary.get('version')!r}, this program reads {VERSION}")
    doubts: list[str] = []
    errors: dict[str, int] = {}
    columns = _Columns()
    try:
        plan = plans.from_dict(summary["plan"])
        for worker in summary["workers"]:
            path = directory / f"worker-{worker['worker']}.csv.gz"
            if worker["lost"]:
                doubts.append(f"worker {worker['worker']} was lost: what it did is missing, or some of it")
            if worker.get("exceptions"):
                doubts.append(f"worker {worker['worker']}: {worker['exceptions'][0]}")
            if not path.exists():
                continue
            reader = records.Reader(path)
            for record in reader:
                columns.add(worker["worker"], record, worker["clock_offset"])
                if record.error:
                    _count(errors, record.error)
            if reader.truncated:
                doubts.append(f"{path.name} is truncated: operations are missing")
    except (KeyError, TypeError, PlanError, records.RecordError) as error:
        raise RunError(f"{directory}: {error}") from error
    if not columns.start:
        raise RunError(f"{directory}: not a single operation was recorded")
    if plan.total and not plan.seconds and len(columns.start) < plan.total:
        doubts.append(f"only {len(columns.start)} of {plan.total} operations were carried out")
    started, operations = columns.operations()
    return Run(directory, plan, started, summary["workers"], operations, doubts, errors)


def _count(errors: dict[str, int], error: str) -> None:
    """Count an error; if servers tell the number of a request in it, by its kind as soon as there are many."""
    if error not in errors and len(errors) >= DIFFERENT_ERRORS:
        error = f"{error.partition(':')[0]}: and others"
    errors[error] = errors.get(error, 0) + 1


class _Columns:
    """Collects records, in a small fraction of the memory that objects would take."""

    def __init__(self) -> None:
        self.kind: list[str] = []
        self.user = array.array("q")
        self.number = array.array("q")
        self.start = array.array("d")
        self.sent = array.array("d")
        self.first_byte = array.array("d")
        self.end = array.array("d")
        self.bytes = array.array("q")
        self.status = array.array("q")
        self.failed = array.array("b")

    def add(self, worker: int, record: records.Record, clock_offset: float) -> None:
        self.kind.append(_KINDS.get(record.operation, record.operation))
        self.user.append(worker << 32 | record.user)
        self.number.append(record.number)
        self.start.append(record.start - clock_offset)
        self.sent.append(record.sent)
        self.first_byte.append(record.first_byte)
        self.end.append(record.end)
        self.bytes.append(record.bytes)
        self.status.append(record.status)
        self.failed.append(bool(record.error))

    def operations(self) -> tuple[float, Operations]:
        epoch = min(self.start)
        start = numpy.array(self.start) - epoch

        def moment(since: array.array) -> numpy.ndarray:
            found = numpy.array(since)
            return numpy.where(found < 0, numpy.nan, start + found)

        return epoch, Operations(
            kind=numpy.array(self.kind), number=numpy.array(self.number), user=numpy.array(self.user), start=start,
            sent=moment(self.sent), first_byte=moment(self.first_byte), end=moment(self.end),
            bytes=numpy.array(self.bytes), status=numpy.array(self.status),
            failed=numpy.array(self.failed, dtype=bool),
        )  # fmt: skip


#: One object for each name, however many records have it.
_KINDS = {kind: kind for kind in plans.KINDS}


def window(operations: Operations) -> Window:
    """From when every user has finished one operation until the first starts its last."""
    users, user = numpy.unique(operations.user, return_inverse=True)
    first_end, last_start = numpy.full(len(users), numpy.inf), numpy.full(len(users), -numpy.inf)
    numpy.minimum.at(first_end, user, operations.end)
    numpy.maximum.at(last_start, user, operations.start)
    begin, end = float(first_end.max()), float(last_start.min())
    if begin < end:
        return Window(begin, end, True)
    return Window(0.0, float(operations.end.max()), False)


def begun_within(operations: Operations, part: Window) -> Operations:
    """The operations whose start counts."""
    return operations.only((operations.start >= part.begin) & (operations.start < part.end))


class Segment(NamedTuple):
    """A second of a run."""

    #: seconds since the first operation
    begin: float
    seconds: float
    #: that were moved, and operations that were done: of one that lasts longer each second has its part
    bytes: float
    operations: float


def segments(operations: Operations, begin: float, end: float) -> list[Segment]:
    """The time from ``begin`` to ``end`` by seconds, of the operations that went well; a part of a second is left out.

    A shorter time is one segment.
    """
    count = int((end - begin) / SEGMENT + 1e-9)
    edges = begin + SEGMENT * numpy.arange(count + 1) if count else numpy.array([begin, end])
    well = operations.only(~operations.failed)
    moved = numpy.diff(_until(well, well.bytes.astype(float), edges))
    done = numpy.diff(_until(well, numpy.ones(len(well)), edges))
    lengths = numpy.diff(edges)
    return [Segment(*map(float, each)) for each in zip(edges[:-1], lengths, moved, done, strict=True)]


def _until(operations: Operations, amounts: numpy.ndarray, moments: numpy.ndarray) -> numpy.ndarray:
    """How much of the amounts, spread evenly over each operation, there was until each of the moments.

    The sum of ramps: each rises from its operation's start to its end. Prefix sums over the starts and the ends in
    order make it a search for each moment, however many operations there are.
    """
    # An operation takes some time; one of which the clock saw none would have an endless rate.
    lengths = numpy.maximum(operations.end - operations.start, 1e-9)
    rates = amounts / lengths
    total = numpy.zeros(len(moments))
    for sign, edges in ((1.0, operations.start), (-1.0, operations.start + lengths)):
        order = numpy.argsort(edges, kind="stable")
        rate = numpy.concatenate(([0.0], numpy.cumsum(rates[order])))
        weighed = numpy.concatenate(([0.0], numpy.cumsum(rates[order] * edges[order])))
        passed = numpy.searchsorted(edges[order], moments, side="right")
        total += sign * (moments * rate[passed] - weighed[passed])
    return total


def percentiles(operations: Operations, phase: str) -> dict[str, float]:
    """``p50`` and so on of a phase, in milliseconds; empty if nothing went well."""
    taken = operations.milliseconds(phase)
    if not len(taken):
        return {}
    return {f"p{each}": float(figure) for each, figure in zip(PERCENTILES, numpy.percentile(taken, PERCENTILES),
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
