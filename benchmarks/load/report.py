"""Results of loads and workloads: bandwidth, throughput, success, response times, and what was used meanwhile, with the
bottleneck. Files only are read, so it can be done again.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.harness import machine
from benchmarks.harness.results import CaseResult, Result, VariantResult
from benchmarks.load import Wrong, analysis, bottleneck, files, usage
from benchmarks.load.analysis import Operations, Run, Window
from benchmarks.load.bottleneck import Limits
from benchmarks.load.plan import Operation
from benchmarks.load.usage import Usage
from benchmarks.load.workload import FORMAT, SUMMARY, VERSION
from fastio.tables import EMPTY, Table, number

MIB = 1 << 20

#: Parameters of a plan that say where, not what: two runs may differ in them without a word.
PLACES = ("server", "labels", "format", "version")
#: Seconds that the start of an operation of an open loop may be late: a busy generator's own delay.
LATE_SECONDS = 0.05
#: Share of all cores that processes outside the load use, from which the figures are doubted.
DISTURBED = 0.25

#: Columns of a result, where its loads have these figures.
COLUMNS = (
    "operations_per_second", "failed", "success_ratio", *(f"whole_p{each:g}_ms" for each in analysis.PERCENTILES),
    "first_byte_p50_ms", "first_byte_p99_ms", "from_due_p50_ms", "from_due_p99_ms", "machine_cpu", "servers_cpu",
    "busiest_cpu", "generator_cpu", "memory_mib", "network_mib_s", "disk_mib_s",
)  # fmt: skip


@dataclass
class Measured:
    """A work of a stage with its operations, or those of a kind of a run of a plan."""

    title: str
    run: Run
    #: of a round of a result, the bottleneck in words among them
    figures: dict[str, Any]
    #: all that was used, and what makes it doubtful
    details: dict[str, Any]


@dataclass
class Found:
    """A workload that was carried out, or a run of a plan."""

    name: str
    works: list[Measured]
    #: failures, omissions, and reasons to doubt all of it
    problems: list[str] = field(default_factory=list)


def read(directory: Path) -> Found:
    """The workload in a directory, or the run of a plan.

    :raises Wrong: if there is neither
    """
    if not (directory / SUMMARY).exists():
        run = analysis.read(directory)
        kinds = sorted(set(map(str, run.operations.kind)))
        own = {kind: figures(run, None, run.operations[run.operations.kind == kind]) for kind in kinds}
        works = [Measured(kind, run, each, {"doubts": notes(run)}) for kind, each in own.items()]
        return Found(directory.name, works)
    data = files.read(directory / SUMMARY, "workload", FORMAT, VERSION)
    found = Found(data["name"], [])
    try:
        samples = usage.read(directory)
    except Wrong as error:
        samples = []
        found.problems.append(str(error))
    for number_, stage in enumerate(data["stages"], 1):
        if stage["status"] != "done":
            found.problems.append(f"stage {number_} {stage['name']}: {stage['status']}")
        for work in stage["works"]:
            title = work["name"] if work["name"] == stage["name"] else f"{stage['name']}, {work['name']}"
            if work["problem"]:
                found.problems.append(f"{title}: {work['problem']}")
            if not work["directory"]:
                continue
            try:
                run = analysis.read(directory / work["directory"])
            except Wrong:
                continue
            part = _counted(run, work["warmup"], work["counted"])
            limits = Limits(users=run.plan.users, think=run.plan.think)
            found.works.append(Measured(title, run, *measured(run, part, samples, limits)))
    found.problems += data["doubts"]
    if data["finished"] is None:
        found.problems.append("it was interrupted")
    return found


def _counted(run: Run, warmup: float, counted: float) -> Window:
    """The part of a run that counts: of that which its work says, what every user took part in."""
    part = analysis.window(run.operations)
    if not counted:
        return part
    begin, end = max(part.begin, warmup), min(part.end, warmup + counted)
    return Window(begin, end, part.cut) if begin < end else part


def measured(
    run: Run, part: Window, samples: Sequence[usage.Samples], limits: Limits
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The figures of a run, and with which details: what was used in the part of it that counts, and the doubts."""
    found, doubts = figures(run, part), notes(run, part)
    used = usage.of(samples, run.started + part.begin, run.started + part.end)
    doubts += used.problems
    details: dict[str, Any] = {"doubts": doubts}
    if used.machines:
        doubts += disturbed(run, used)
        limit = bottleneck.find(used, found, limits)
        found |= {**usage_figures(used), "bottleneck": str(limit)}
        details |= {"usage": used.to_dict(), "shares": limit.to_dict()}
    return found, details


def figures(run: Run, part: Window | None = None, operations: Operations | None = None) -> dict[str, Any]:
    """Return the figures of a run: for a suite, whose rounds are whole runs.

    ``seconds`` and ``bytes`` are of the part that counts; times are in milliseconds. ``verified`` is true if nothing
    that was read was wrong, and nothing is missing.

    :param part: that counts, if it is not all that every user took part in
    :param operations: of the run that are looked at, by default all
    """
    operations = run.operations if operations is None else operations
    part = part or analysis.window(run.operations)
    counted = analysis.begun_within(operations, part)
    moved, done = analysis.within(operations, part)
    found: dict[str, Any] = {
        "seconds": part.seconds,
        "bytes": round(moved),
        "operations": len(counted),
        "operations_per_second": done / part.seconds,
        "failed": int(operations.failed.sum()),
        "success_ratio": float(1 - operations.failed.mean()),
        "verified": not operations.wrong.any() and not run.doubts,
        "generator_cpu": analysis.generator_cpu(run, part),
    }
    for phase in analysis.PHASES:
        for name, figure in analysis.percentiles(counted, phase).items():
            found[f"{phase}_{name}_ms"] = figure
    return found


def notes(run: Run, part: Window | None = None) -> list[str]:
    """Return what makes a run doubtful, in words.

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
    worst = max((abs(worker["clock_error"]) for worker in run.workers), default=0.0)
    if worst > 0.1:
        found.append(f"the workers' clocks agree to {worst * 1000:.0f} ms only")
    for error, count in sorted(run.errors.items(), key=lambda each: -each[1])[:5]:
        found.append(f"{count} x {error}")
    return found


def disturbed(run: Run, used: Usage) -> list[str]:
    """Return a note if processes that are neither watched nor the generator's used much of the processors."""
    generator = [share for worker in run.workers for _, share in worker.get("cpu", [])]
    # The mean of all their seconds, times how many workers there are.
    own = sum(generator) / len(generator) * len(run.workers) if generator else 0.0
    cores = sum(len(machine.cores) for machine in used.machines)
    others = sum(machine.cpu for machine in used.machines) - sum(each.cpu for each in used.processes) - own
    if others <= DISTURBED * cores:
        return []
    return [f"others, who are not watched, used {others:.1f} of {cores} processors: figures of a busy machine"]


def usage_figures(used: Usage) -> dict[str, float]:
    """Return what was used, in one figure each: processors, MiB, MiB/s."""
    network = [sum(rates) for each in used.machines for name, rates in each.network.items()]
    disks = [read + written for each in used.machines for read, written, _ in each.disks.values()]
    return {
        "machine_cpu": sum(each.cpu for each in used.machines),
        "servers_cpu": sum(each.cpu for each in used.processes),
        "busiest_cpu": max((each.cpu for each in used.processes), default=0.0),
        "memory_mib": sum(each.memory for each in used.processes) / MIB,
        "network_mib_s": max(network, default=0.0) / MIB,
        "disk_mib_s": sum(disks) / MIB,
    }


def result(found: Sequence[Found]) -> Result:
    """The works of a workload, or the kinds of operations of a plan, as rows; rounds are the runs.

    Those that move bytes are one case, and the others are another.

    :raises Wrong: if the runs are not of one plan
    """
    made = Result("load", machine.describe(), machine.packages())
    rows: dict[str, list[Measured]] = {}
    for one in found:
        for each in one.works:
            rows.setdefault(each.title, []).append(each)
    cases: dict[bool, dict[str, list[Measured]]] = {}
    for title, rounds in rows.items():
        cases.setdefault(any(each.figures["bytes"] for each in rounds), {})[title] = rounds
    for moves, own in sorted(cases.items(), reverse=True):
        known = {title: parameters(rounds[0].run) for title, rounds in own.items()}
        if any(parameters(each.run) != known[title] for title, rounds in own.items() for each in rounds):
            raise Wrong("a result is made of runs of the same plan, with as many workers")
        first = next(iter(known.values()))
        columns = [each for each in COLUMNS if any(each in one[0].figures for one in own.values())]
        case = CaseResult(
            name="data" if moves else "no-data", title=", ".join(one.name for one in found), workload="load",
            parameters={name: value for name, value in first.items()
                        if all(each.get(name) == value for each in known.values())},
            baseline="", unit="MiB/s" if moves else "ms", value="seconds" if moves else "whole_p50_ms",
            columns=columns, seed=0, complete=True,
        )  # fmt: skip
        for title, rounds in own.items():
            row = VariantResult(title, ["python", "-m", "benchmarks.load"], known[title], len(rounds), len(rounds))
            doubts = list(dict.fromkeys(note for each in rounds for note in each.details["doubts"]))
            row.details = {**rounds[-1].details, "doubts": doubts}
            for index, each in enumerate(rounds):
                if moves or case.value in each.figures:
                    row.runs.append({"round": index, "warmup": False, "started": each.run.started, **each.figures})
                else:
                    row.failure = {"reason": "no operation went well", "status": 0, "stderr": "\n".join(doubts)}
            case.variants[title] = row
        made.cases.append(case)
    return made


def judgement(result: Result) -> list[Table]:
    """Describe the limit of each load, and the resources used by every process and machine meanwhile."""
    rows = [(title, row.details) for case in result.cases for title, row in case.variants.items()]
    used = (processes(title, details["usage"]) for title, details in rows if details.get("usage"))
    return [bottlenecks((title, details.get("shares") or {}) for title, details in rows), *used]


def bottlenecks(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> Table:
    """Describe the limit of each load, with the figures that show it, and the next limit.

    :param rows: name, and what :class:`~benchmarks.load.bottleneck.Bottleneck` is as plain data, or nothing
    """
    made = Table("The bottlenecks", ["", "resource", "of", "evidence", "next"], [])
    for name, found in rows:
        shares = found.get("shares") or []
        if shares:
            limit: list[Any] = ["none", EMPTY, 0.0, EMPTY] if found["resource"] == "none" else shares[0]
            others = shares if found["resource"] == "none" else shares[1:]
            following = f"{others[0][0]} of {others[0][1]}" if others else EMPTY
            made.rows.append([name, limit[0], limit[1], limit[3], following])
    return made


def processes(title: str, used: Mapping[str, Any]) -> Table:
    """Describe the use of every process and every core.

    :param used: a :class:`~benchmarks.load.usage.Usage` as plain data
    """
    made = Table(f"{title}: processes", ["", "CPU", "busiest thread", "memory MiB", "sent MiB/s",
                 "received MiB/s", "read MiB/s", "written MiB/s"], [])  # fmt: skip
    for one in used["processes"]:
        disk = [number(rate / MIB) for rate in (one["read"], one["written"])]
        cells = [number(one["cpu"]), number(one["thread"]), number(one["memory"] / MIB), EMPTY, EMPTY, *disk]
        made.rows.append([f"{one['name']} ({len(one['pids'])}) on {one['host']}", *cells])
    for box in used["machines"]:
        cores, rates = box["cores"], [*_sums(box["network"], 2), *_sums(box["disks"], 2)]
        moved = (each / MIB for each in (box["memory"], *rates))
        made.rows.append([box["host"], *map(number, [sum(cores), max(cores), *moved])])
        made.notes.append(f"{box['host']}: " + ", ".join(f"core {core} {busy:.2f}" for core, busy in enumerate(cores)))
    return made


def _sums(rates: Mapping[str, Sequence[float]], count: int) -> Iterator[float]:
    """The first rates of all devices together."""
    return (sum(each[place] for each in rates.values()) for place in range(count))


def parameters(run: Run) -> dict[str, Any]:
    """Return the parameters of a run: all of its plan but the places."""
    plan = {name: value for name, value in run.plan.to_dict().items() if name not in PLACES}
    shown = {"operations": "; ".join(map(_described, run.plan.operations)), "workers": len(run.workers)}
    return {**plan, **run.plan.labels, **shown}


def _described(operation: Operation) -> str:
    fields = ((each.name, getattr(operation, each.name)) for each in dataclasses.fields(operation))
    return ", ".join(f"{name} {getattr(value, 'selector', value)}" for name, value in fields if value)
