"""A run of a load as a result: the same that all suites have, for the same tables, plots and comparison.

Each second of the run that counts is one of its rounds, so what is shown is the median second and its spread, and two
runs compare by the rank test over their seconds.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.harness import machine, statistics
from benchmarks.harness import tables as plain
from benchmarks.harness.results import CaseResult, Result, VariantResult
from benchmarks.load import analysis
from benchmarks.load.analysis import Operations, Run, Window
from fastio.tables import EMPTY, Table, number

#: Parameters of a plan that say where, not what: two runs may differ in them without a word.
PLACES = ("server", "labels")
#: Seconds that the start of an operation of an open loop may be late: a busy generator's own delay.
LATE_SECONDS = 0.05
_PERCENTILES = tuple(f"p{each:g}" for each in analysis.PERCENTILES)


def figures(run: Run, part: Window | None = None) -> dict[str, Any]:
    """What a run says in one figure each: for a suite, whose rounds are whole runs.

    ``seconds`` and ``bytes`` are of the part that counts; times are in milliseconds. ``verified`` is true if nothing
    that was read in the run was wrong, and nothing is missing.

    :param part: that counts, if it is not all that every user took part in
    """
    part = part or analysis.window(run.operations)
    return _measures(run.operations, part) | {
        "verified": not run.operations.wrong.any() and not run.doubts,
        "generator_cpu": analysis.generator_cpu(run, part),
        "cut": part.cut,
    }


def _measures(operations: Operations, part: Window) -> dict[str, Any]:
    """What operations say in one figure each."""
    counted = analysis.begun_within(operations, part)
    moved = analysis.whole(operations, part)
    found: dict[str, Any] = {
        "seconds": moved.seconds,
        "bytes": round(moved.bytes),
        "operations": len(counted),
        "operations_per_second": moved.operations / moved.seconds,
        "failed": int(operations.failed.sum()),
        "success_ratio": float(1 - operations.failed.mean()),
    }
    for phase in analysis.PHASES:
        for name, figure in analysis.percentiles(counted, phase).items():
            found[f"{phase}_{name}_ms"] = figure
    return found


def tables(runs: Sequence[Run]) -> list[Table]:
    """All runs at one glance, with what they were, and the seconds of each kind of operation."""
    first = table(runs)
    first.notes[:0] = [
        f"{run.directory.name}: " + ", ".join(f"{name} {value}" for name, value in _parameters(run).items())
        for run in runs
    ]
    seconds = result(runs)
    for case in seconds.cases:
        # What is in the first table is not repeated in each.
        case.parameters = {}
        for row in case.variants.values():
            row.parameters, row.details = {}, {}
    return [first, *plain.tables(seconds)]


def table(runs: Sequence[Run]) -> Table:
    """All runs at one glance, a row for each kind of operation."""
    head = ["", "operation", "operations", "failed", "/s", "MiB/s", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms",
            "first byte p50 ms", "p99 ms", "generator CPU"]  # fmt: skip
    made = Table("Runs", head, [])
    for run in runs:
        part = analysis.window(run.operations)
        share = analysis.generator_cpu(run, part)
        for kind in sorted(set(run.operations.kind)):
            own = run.operations.only(run.operations.kind == kind)
            found = _measures(own, part)
            made.rows.append([run.directory.name, kind, *_row(found), f"{share:.0%}"])
            if own.open:
                made.rows.append([run.directory.name, f"{kind}, from when due", *_row_from_due(found)])
        made.notes += [f"{run.directory.name}: {note}" for note in notes(run)]
    return made


def _row(found: Mapping[str, Any]) -> list[str]:
    times = (*(f"whole_{each}_ms" for each in _PERCENTILES), "first_byte_p50_ms", "first_byte_p99_ms")
    moved = found["bytes"] / found["seconds"] / (1 << 20)
    rates = [number(found["operations_per_second"]), number(moved), *(number(found.get(name)) for name in times)]
    return [str(found["operations"]), str(found["failed"]), *rates]


def _row_from_due(found: Mapping[str, Any]) -> list[str]:
    return [*[EMPTY] * 4, *(number(found.get(f"from_due_{each}_ms")) for each in _PERCENTILES), *[EMPTY] * 3]


def notes(run: Run, part: Window | None = None) -> list[str]:
    """What makes a run doubtful, in words.

    :param part: as for :func:`figures`
    """
    part = part or analysis.window(run.operations)
    found = list(run.doubts)
    if run.operations.open:
        late = (run.operations.start - run.operations.due)[~run.operations.failed]
        part_late = float((late > LATE_SECONDS).mean()) if len(late) else 0.0
        if part_late:
            found.append(
                f"{part_late:.1%} of the operations began more than {LATE_SECONDS * 1000:.0f} ms after they were due, "
                f"the worst {float(late.max()):.3g} s: all {run.plan.users} users were busy"
            )
    if not part.cut:
        found.append("too short for its warm-up and its tail to be cut: all of it counts")
    share = analysis.generator_cpu(run, part)
    if statistics.limited(share):
        found.append(statistics.limit_note(share))
    worst = max((abs(worker["clock_error"]) for worker in run.workers), default=0.0)
    if worst > 0.1:
        found.append(f"the workers' clocks agree to {worst * 1000:.0f} ms only")
    for error, count in sorted(run.errors.items(), key=lambda each: -each[1])[:5]:
        found.append(f"{count} x {error}")
    return found


def result(runs: Sequence[Run]) -> Result:
    """A case for each kind of operation and way to look at it, a row for each run."""
    made = Result("load", machine.describe(), machine.packages())
    for kind in dict.fromkeys(str(kind) for run in runs for kind in sorted(set(run.operations.kind))):
        able = [run for run in runs if (run.operations.kind == kind).any()]
        if any(run.operations.bytes[run.operations.kind == kind].any() for run in able):
            made.cases.append(_case(kind, able, "throughput", "MiB/s", "seconds"))
        made.cases.append(_case(kind, able, "time per operation", "ms", "whole_ms"))
        if all(run.operations.open for run in able):
            made.cases.append(_case(kind, able, "time from when it was due", "ms", "from_due_ms"))
        made.cases.append(_case(kind, able, "time to the first byte", "ms", "first_byte_ms"))
    return made


def _case(kind: str, runs: Sequence[Run], title: str, unit: str, value: str) -> CaseResult:
    # A run by itself has a name that another one, with which it is compared later on, has as well.
    names = [run.directory.name for run in runs] if len(runs) > 1 else ["run"]
    made = CaseResult(
        name=f"{kind}-{title.replace(' ', '-')}", title=f"{kind}: {title}", workload="load",
        parameters=_parameters(runs[0]), baseline=names[0], unit=unit, value=value, columns=["operations"],
        seed=runs[0].plan.seed, complete=True,
    )  # fmt: skip
    for name, run in zip(names, runs, strict=True):
        own, part = run.operations.only(run.operations.kind == kind), analysis.window(run.operations)
        row = VariantResult(kind, ["python", "-m", "benchmarks.load", "run"], _parameters(run), 0, 0)
        for index, segment in enumerate(analysis.segments(own, part.begin, part.end)):
            found = _of_second(own, segment)
            # A second in which no operation began has no times.
            if value in found:
                row.runs.append({"round": index, "warmup": False, "started": run.started + segment.begin, **found})
        row.rounds = row.usual_rounds = len(row.runs)
        row.details = {"doubts": notes(run)}
        made.variants[name] = row
    return made


def _parameters(run: Run) -> dict[str, Any]:
    operations = [
        f"{each.kind} of {each.count} from number {each.first}, {each.selection}, weight {each.weight}"
        for each in run.plan.operations
    ]
    shown = {"operations": "; ".join(operations), "workers": len(run.workers)}
    plan = {name: value for name, value in run.plan.to_dict().items() if name not in (*PLACES, "format", "version")}
    return {**plan, **run.plan.labels, **shown}


def _of_second(own: Operations, segment: analysis.Segment) -> dict[str, Any]:
    end = segment.begin + segment.seconds
    begun = own.only((own.begin >= segment.begin) & (own.begin < end))
    found: dict[str, Any] = {
        "seconds": segment.seconds, "bytes": round(segment.bytes), "operations": segment.operations,
        "verified": not begun.wrong.any(),
    }  # fmt: skip
    for phase in ("whole", "from_due", "first_byte"):
        middle = analysis.percentiles(begun, phase)
        if middle:
            found |= {f"{phase}_ms": middle["p50"], f"{phase}_p99_ms": middle["p99"]}
    return found
