"""Tables and results of loads and workloads: bandwidth, throughput, success, response times, and what was used
meanwhile, with the bottleneck. It reads files only, so it can be done again.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.harness import machine, statistics
from benchmarks.harness.results import CaseResult, Result, VariantResult
from benchmarks.load import Wrong, analysis, bottleneck, files, stages, usage
from benchmarks.load.analysis import Operations, Run, Window
from benchmarks.load.bottleneck import Bottleneck, Limits
from benchmarks.load.plan import Operation
from benchmarks.load.usage import Usage
from fastio.tables import EMPTY, Table, number

MIB = 1 << 20

#: Parameters of a plan that say where, not what: two runs may differ in them without a word.
PLACES = ("server", "labels", "format", "version")
#: Seconds that the start of an operation of an open loop may be late: a busy generator's own delay.
LATE_SECONDS = 0.05
#: Share of all cores that processes outside the load use, from which the figures are doubted.
DISTURBED = 0.25

#: Figures of a work of a workload, and of a run of a plan: name -> heading.
COLUMNS = {
    "operations_per_second": "ops/s",
    "success_ratio": "success",
    "whole_p50_ms": "response p50 ms",
    "whole_p99_ms": "response p99 ms",
    "machine_cpu": "CPU of the machine",
    "servers_cpu": "CPU of the servers",
    "busiest_cpu": "CPU of the busiest",
    "generator_cpu": "CPU of the generator",
    "memory_mib": "memory of the servers, MiB",
    "network_mib_s": "network, MiB/s",
    "disk_mib_s": "disk, MiB/s",
}
RUN_COLUMNS = {
    "operations": "operations",
    "failed": "failed",
    "operations_per_second": "ops/s",
    **{f"whole_p{each:g}_ms": f"p{each:g} ms" for each in analysis.PERCENTILES},
    "first_byte_p50_ms": "first byte p50 ms",
    "first_byte_p99_ms": "first byte p99 ms",
    "from_due_p50_ms": "from when due p50 ms",
    "from_due_p99_ms": "from when due p99 ms",
    "generator_cpu": "CPU of the generator",
}


@dataclass
class Measured:
    """A work of a stage with its operations, or those of a kind of a run of a plan."""

    #: empty for a run of a plan
    stage: str
    name: str
    kind: str
    run: Run
    figures: dict[str, Any]
    #: None if there are no samples of its time
    usage: Usage | None = None
    bottleneck: Bottleneck | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        return self.name if self.stage in ("", self.name) else f"{self.stage}, {self.name}"

    def row(self) -> dict[str, Any]:
        """Figures of a round of a result, and the bottleneck in words."""
        return {**self.figures, "bottleneck": str(self.bottleneck) if self.bottleneck else ""}

    def details(self) -> dict[str, Any]:
        """Return all that was used, and what makes it doubtful."""
        used = self.usage.to_dict() if self.usage else None
        shares = self.bottleneck.to_dict() if self.bottleneck else None
        return {"usage": used, "shares": shares, "doubts": self.notes}


@dataclass
class Found:
    """A workload that was carried out, or a run of a plan."""

    name: str
    works: list[Measured]
    #: why it has failed, empty if it has not
    failure: str = ""
    doubts: list[str] = field(default_factory=list)
    #: stage -> done, failed or skipped; empty for a run of a plan
    stages: dict[str, str] = field(default_factory=dict)
    #: what each work without operations, or with none that could be done, came to
    problems: list[str] = field(default_factory=list)


def read(directory: Path) -> Found:
    """The workload in a directory, or the run of a plan.

    :raises Wrong: if there is neither
    """
    if not (directory / stages.SUMMARY).exists():
        run = analysis.read(directory)
        kinds = sorted(set(map(str, run.operations.kind)))
        own = {kind: figures(run, None, run.operations[run.operations.kind == kind]) for kind in kinds}
        works = [Measured("", kind, "normal", run, each, notes=notes(run)) for kind, each in own.items()]
        return Found(directory.name, works)
    data = files.read(directory / stages.SUMMARY, "workload", stages.FORMAT, stages.VERSION, Wrong)
    found = Found(data["name"], [], data["failure"], list(data["doubts"]))
    try:
        samples = usage.read(directory)
    except usage.SamplesError as error:
        samples = []
        found.doubts.append(str(error))
    if data["finished"] is None:
        found.doubts.append("it was interrupted")
    for number_, stage in enumerate(data["stages"], 1):
        found.stages[f"{number_} {stage['name']}"] = stage["status"]
        for work in stage["works"]:
            if work["problem"]:
                found.problems.append(f"{stage['name']}, {work['name']}: {work['problem']}")
            if not work["directory"]:
                continue
            try:
                run = analysis.read(directory / work["directory"])
            except analysis.RunError:
                continue
            part = _counted(run, work["warmup"], work["counted"])
            limits = Limits(users=run.plan.users, think=run.plan.think)
            found.works.append(measured(stage["name"], work["name"], work["kind"], run, part, samples, limits))
    return found


def _counted(run: Run, warmup: float, counted: float) -> Window:
    """The part of a run that counts: of that which its work says, what every user took part in."""
    part = analysis.window(run.operations)
    if not counted:
        return part
    begin, end = max(part.begin, warmup), min(part.end, warmup + counted)
    return Window(begin, end, part.cut) if begin < end else part


def measured(
    stage: str, name: str, kind: str, run: Run, part: Window, samples: list[usage.Samples], limits: Limits
) -> Measured:  # fmt: skip
    """The figures of a run, with what was used in the part of it that counts."""
    found = Measured(stage, name, kind, run, figures(run, part), notes=notes(run, part))
    used = usage.of(samples, run.started + part.begin, run.started + part.end)
    found.notes += used.problems
    if used.machines:
        found.notes += disturbed(run, used)
        found.usage, found.bottleneck = used, bottleneck.find(used, found.figures, limits)
        found.figures |= usage_figures(used)
    return found


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
    share = analysis.generator_cpu(run, part)
    if statistics.limited(share):
        found.append(statistics.limit_note(share))
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


def tables(found: Sequence[Found]) -> list[Table]:
    """All works at one glance, and what every process used while one went on."""
    works = [each for one in found for each in one.works]
    return [_overview(found), *(processes(each) for each in works if each.kind == "normal" and each.usage)]


def _overview(found: Sequence[Found]) -> Table:
    works = [each for one in found for each in one.works]
    columns = COLUMNS if found[0].stages else RUN_COLUMNS
    columns = {name: heading for name, heading in columns.items() if any(name in each.figures for each in works)}
    limited = any(each.bottleneck for each in works)
    made = Table(", ".join(one.name for one in found), ["", "MiB/s", *columns.values(), *["bottleneck"] * limited], [])
    for one in found:
        said: dict[str, None] = {}
        for each in one.works:
            moved = each.figures["bytes"] / each.figures["seconds"] / MIB
            cells = [_cell(name, each.figures.get(name)) for name in columns]
            resource = each.bottleneck.resource if each.bottleneck else EMPTY
            title = each.title if one.stages else f"{one.name}, {each.title}"
            made.rows.append([title, number(moved), *cells, *[resource] * limited])
            # All kinds of operations of a run have the same notes.
            about = each.title if one.stages else one.name
            shown = [] if one.stages else [", ".join(f"{name} {value}" for name, value in parameters(each.run).items())]
            said.update(dict.fromkeys(f"{about}: {note}" for note in (*shown, *each.notes)))
        made.notes += [*said, *(f"{each.title}: {each.bottleneck}" for each in one.works if each.bottleneck)]
        made.notes += [f"failed: {problem}" for problem in one.problems]
        made.notes += [f"stage {name}: {status}" for name, status in one.stages.items() if status != "done"]
        made.notes += one.doubts
    return made


def _cell(name: str, figure: float | None) -> str:
    if isinstance(figure, int):
        return str(figure)
    return f"{figure:.2%}" if name == "success_ratio" and figure is not None else number(figure)


def processes(each: Measured) -> Table:
    """Return what every process and every core used while a work went on."""
    assert each.usage is not None
    made = Table(f"{each.title}: processes", ["", "CPU", "busiest thread", "memory MiB", "sent MiB/s",
                 "received MiB/s", "read MiB/s", "written MiB/s"], [])  # fmt: skip
    for one in each.usage.processes:
        disk = [number(rate / MIB) for rate in (one.read, one.written)]
        cells = [number(one.cpu), number(one.thread), number(one.memory / MIB), EMPTY, EMPTY, *disk]
        made.rows.append([f"{one.name} ({len(one.pids)}) on {one.host}", *cells])
    for box in each.usage.machines:
        network = [sum(rates) / MIB for rates in zip(*box.network.values(), strict=True)] or [0.0, 0.0]
        moved = [sum(rates) / MIB for rates in list(zip(*box.disks.values(), strict=True))[:2]] or [0.0, 0.0]
        cells = [number(box.cpu), number(max(box.cores)), number(box.memory / MIB), *map(number, [*network, *moved])]
        made.rows.append([box.host, *cells])
        made.notes.append(f"{box.host}: " + ", ".join(f"core {core} {busy:.2f}" for core, busy in enumerate(box.cores)))
    return made


def result(found: Sequence[Found]) -> Result:
    """A case for each work that is not of a preparing or a cleaning kind, or kind of operation; rounds are the runs.

    :raises Wrong: if the runs are not of one plan
    """
    made = Result("load", machine.describe(), machine.packages())
    cases: dict[str, list[Measured]] = {}
    for each in (each for one in found for each in one.works if each.kind == "normal"):
        cases.setdefault(f"{each.stage}-{each.name}".lstrip("-"), []).append(each)
    for name, rounds in cases.items():
        first = rounds[0]
        known = parameters(first.run)
        if any(parameters(each.run) != known for each in rounds):
            raise Wrong("a result is made of runs of the same plan, with as many workers")
        columns = [*COLUMNS, "first_byte_p50_ms", "from_due_p99_ms"]
        moves = any(each.figures["bytes"] for each in rounds)
        case = CaseResult(
            name=name, title=first.title, workload="load", parameters=known, baseline="run",
            unit="MiB/s" if moves else "ms", value="seconds" if moves else "whole_p50_ms",
            columns=[each for each in columns if each in first.figures], seed=first.run.plan.seed, complete=True,
        )  # fmt: skip
        row = VariantResult(first.name, ["python", "-m", "benchmarks.load"], known, len(rounds), len(rounds))
        for index, each in enumerate(rounds):
            row.runs.append({"round": index, "warmup": False, "started": each.run.started, **each.row()})
        row.details = {**rounds[-1].details(), "doubts": [note for each in rounds for note in each.notes]}
        case.variants["run"] = row
        made.cases.append(case)
    return made


def parameters(run: Run) -> dict[str, Any]:
    """Return the parameters of a run: all of its plan but the places."""
    plan = {name: value for name, value in run.plan.to_dict().items() if name not in PLACES}
    shown = {"operations": "; ".join(map(_described, run.plan.operations)), "workers": len(run.workers)}
    return {**plan, **run.plan.labels, **shown}


def _described(operation: Operation) -> str:
    fields = ((each.name, getattr(operation, each.name)) for each in dataclasses.fields(operation))
    return ", ".join(f"{name} {getattr(value, 'selector', value)}" for name, value in fields if value)
