"""Runs of a load as a result: the same that all suites have, for the same tables, plots and comparison."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.harness import machine, statistics
from benchmarks.harness.results import CaseResult, Result, VariantResult
from benchmarks.load import Wrong, analysis
from benchmarks.load.analysis import Operations, Run, Window
from fastio.tables import EMPTY, Table, number

#: Parameters of a plan that say where, not what: two runs may differ in them without a word.
PLACES = ("server", "labels")
#: Seconds that the start of an operation of an open loop may be late: a busy generator's own delay.
LATE_SECONDS = 0.05
#: What a result shows beside its value.
COLUMNS = ("operations_per_second", "success_ratio", "whole_p50_ms", "whole_p99_ms", "first_byte_p50_ms",
           "generator_cpu")  # fmt: skip
_PERCENTILES = tuple(f"p{each:g}" for each in analysis.PERCENTILES)


def figures(run: Run, part: Window | None = None, operations: Operations | None = None) -> dict[str, Any]:
    """What a run says in one figure each: for a suite, whose rounds are whole runs.

    ``seconds`` and ``bytes`` are of the part that counts; times are in milliseconds. ``verified`` is true if nothing
    that was read in the run was wrong, and nothing is missing.

    :param part: that counts, if it is not all that every user took part in
    :param operations: of the run that are looked at, by default all
    """
    part = part or analysis.window(run.operations)
    operations = run.operations if operations is None else operations
    return _measures(operations, part) | {
        "verified": not operations.wrong.any() and not run.doubts,
        "generator_cpu": analysis.generator_cpu(run, part),
        "cut": part.cut,
    }


def _measures(operations: Operations, part: Window) -> dict[str, Any]:
    """What operations say in one figure each."""
    counted = analysis.begun_within(operations, part)
    moved, done = analysis.within(operations, part)
    found: dict[str, Any] = {
        "seconds": part.seconds,
        "bytes": round(moved),
        "operations": len(counted),
        "operations_per_second": done / part.seconds,
        "failed": int(operations.failed.sum()),
        "success_ratio": float(1 - operations.failed.mean()),
    }
    for phase in analysis.PHASES:
        for name, figure in analysis.percentiles(counted, phase).items():
            found[f"{phase}_{name}_ms"] = figure
    return found


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
        shown = ", ".join(f"{name} {value}" for name, value in _parameters(run).items())
        made.notes += [f"{run.directory.name}: {note}" for note in (shown, *notes(run))]
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
    """A case for each kind of operation, whose rounds are the runs.

    :raises Wrong: if the runs are not of one plan
    """
    parameters = _parameters(runs[0])
    if any(_parameters(run) != parameters for run in runs):
        raise Wrong("a result is made of runs of the same plan, with as many workers")
    made = Result("load", machine.describe(), machine.packages())
    for kind in sorted(set(map(str, runs[0].operations.kind))):
        row = VariantResult(kind, ["python", "-m", "benchmarks.load", "run"], parameters, len(runs), len(runs))
        for index, run in enumerate(runs):
            own = run.operations.only(run.operations.kind == kind)
            row.runs.append({"round": index, "warmup": False, "started": run.started, **figures(run, None, own)})
        row.details = {"doubts": [note for run in runs for note in notes(run)]}
        moves = any(each["bytes"] for each in row.runs)
        case = CaseResult(
            name=kind, title=kind, workload="load", parameters=parameters, baseline="run",
            unit="MiB/s" if moves else "ms", value="seconds" if moves else "whole_p50_ms",
            columns=[*COLUMNS, *(["from_due_p99_ms"] if runs[0].operations.open else [])], seed=runs[0].plan.seed,
            complete=True,
        )  # fmt: skip
        case.variants["run"] = row
        made.cases.append(case)
    return made


def _parameters(run: Run) -> dict[str, Any]:
    operations = [
        f"{each.kind} of {each.count} from number {each.first}, {each.selection}, weight {each.weight}"
        for each in run.plan.operations
    ]
    shown = {"operations": "; ".join(operations), "workers": len(run.workers)}
    plan = {name: value for name, value in run.plan.to_dict().items() if name not in (*PLACES, "format", "version")}
    return {**plan, **run.plan.labels, **shown}
