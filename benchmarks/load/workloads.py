"""What a workload that was carried out says: of each work bandwidth, throughput, success, response time, and what was
used meanwhile, with the bottleneck. It reads files only, so it can be done again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.harness import machine
from benchmarks.harness.results import CaseResult, Result, VariantResult
from benchmarks.load import Wrong, analysis, bottleneck, files, report, usage
from benchmarks.load.analysis import Run, Window
from benchmarks.load.bottleneck import Bottleneck, Limits
from benchmarks.load.stages import FORMAT, SUMMARY, VERSION
from benchmarks.load.usage import Usage
from fastio.tables import EMPTY, Table, number

MIB = 1 << 20

#: Share of all cores that is used by who has no part in the load, from which the figures are doubted.
DISTURBED = 0.25

#: What is said of a load in one figure each, beside those of benchmarks.load.report: name -> heading.
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


class WorkloadDirectoryError(Wrong):
    """A directory that does not hold a workload."""


@dataclass
class Measured:
    """A work of a stage, with its operations."""

    stage: str
    name: str
    kind: str
    run: Run
    figures: dict[str, Any]
    #: None if there are no samples of its time
    usage: Usage | None
    bottleneck: Bottleneck | None
    notes: list[str] = field(default_factory=list)


@dataclass
class Found:
    """A workload that was carried out."""

    name: str
    #: why it has failed, empty if it has not
    failure: str
    doubts: list[str]
    #: stage -> done, failed or skipped
    stages: dict[str, str]
    works: list[Measured]
    #: what each work without operations, or with none that could be done, came to
    problems: list[str]


def read(directory: Path) -> Found:
    """The workload in a directory.

    :raises WorkloadDirectoryError: if there is none
    """
    data = files.read(directory / SUMMARY, "workload", FORMAT, VERSION, WorkloadDirectoryError)
    found = Found(data["name"], data["failure"], list(data["doubts"]), {}, [], [])
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
            found.works.append(_measured(stage["name"], work, run, samples))
    return found


def _measured(stage: str, work: Mapping[str, Any], run: Run, samples: list[usage.Samples]) -> Measured:
    part = window(run, work["warmup"], work["counted"])
    limits = Limits(users=run.plan.users, think=run.plan.think)
    return measured(stage, work["name"], work["kind"], run, part, samples, limits)


def window(run: Run, warmup: float, counted: float) -> Window:
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
    figures = report.figures(run, part)
    notes = report.notes(run, part)
    used = usage.of(samples, run.started + part.begin, run.started + part.end)
    notes += used.problems
    if not used.machines:
        return Measured(stage, name, kind, run, figures, None, None, notes)
    notes += disturbed(run, used)
    found = bottleneck.find(used, figures, limits)
    return Measured(stage, name, kind, run, figures | usage_figures(used), used, found, notes)


def disturbed(run: Run, used: Usage) -> list[str]:
    """That others used much of the machines' processors, who are neither watched nor the load generator."""
    generator = [share for worker in run.workers for _, share in worker.get("cpu", [])]
    # The mean of all their seconds, times how many workers there are.
    own = sum(generator) / len(generator) * len(run.workers) if generator else 0.0
    cores = sum(len(machine.cores) for machine in used.machines)
    others = sum(machine.cpu for machine in used.machines) - sum(each.cpu for each in used.processes) - own
    if others <= DISTURBED * cores:
        return []
    return [f"others, who are not watched, used {others:.1f} of {cores} processors: figures of a busy machine"]


def usage_figures(used: Usage) -> dict[str, float]:
    """What was used, in one figure each: processors, MiB, MiB/s."""
    network = [sum(rates) for each in used.machines for name, rates in each.network.items()]
    disks = [read + written for each in used.machines for read, written, _ in each.disks.values()]
    return {
        "machine_cpu": sum(each.cpu for each in used.machines),
        "busiest_core": max((core for each in used.machines for core in each.cores), default=0.0),
        "servers_cpu": sum(each.cpu for each in used.processes),
        "busiest_cpu": max((each.cpu for each in used.processes), default=0.0),
        "memory_mib": sum(each.memory for each in used.processes) / MIB,
        "network_mib_s": max(network, default=0.0) / MIB,
        "disk_mib_s": sum(disks) / MIB,
    }


def table(found: Found) -> Table:
    """All works at one glance."""
    head = ["", "MiB/s", *COLUMNS.values(), "bottleneck"]
    made = Table(found.name, head, [])
    for each in found.works:
        figures = each.figures
        moved = figures["bytes"] / figures["seconds"] / MIB
        cells = [f"{figures[name]:.2%}" if name == "success_ratio" else number(figures.get(name)) for name in COLUMNS]
        named = f"{each.bottleneck.resource}" if each.bottleneck else EMPTY
        made.rows.append([_title(each), number(moved), *cells, named])
        made.notes += [f"{_title(each)}: {note}" for note in each.notes]
    made.notes += [f"{_title(each)}: {each.bottleneck}" for each in found.works if each.bottleneck]
    made.notes += [f"failed: {problem}" for problem in found.problems]
    made.notes += [f"stage {name}: {status}" for name, status in found.stages.items() if status != "done"]
    made.notes += found.doubts
    return made


def _title(each: Measured) -> str:
    return each.stage if each.stage == each.name else f"{each.stage}, {each.name}"


def processes(each: Measured) -> Table:
    """What every process and every core used while a work went on."""
    made = Table(f"{_title(each)}: processes", ["", "CPU", "busiest thread", "memory MiB", "sent MiB/s",
                 "received MiB/s", "read MiB/s", "written MiB/s"], [])  # fmt: skip
    if each.usage is None:
        return made
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


def result(found: Found) -> Result:
    """The same that all suites have: a case of one row for each work that is not of a preparing or a cleaning kind."""
    made = Result("workload", machine.describe(), machine.packages())
    for each in found.works:
        if each.kind != "normal":
            continue
        case = CaseResult(
            name=f"{each.stage}-{each.name}",
            title=_title(each),
            workload="load",
            parameters=dict(each.run.plan.labels),
            baseline="run",
            unit="MiB/s",
            value="seconds",
            columns=list(COLUMNS),
            seed=each.run.plan.seed,
            complete=True,
        )
        row = VariantResult(each.name, ["python", "-m", "benchmarks.load", "workload"], case.parameters, 1, 1)
        row.runs.append({"round": 0, "warmup": False, "started": each.run.started, **plain(each)})
        row.details = {"doubts": each.notes, **details(each)}
        case.variants["run"] = row
        made.cases.append(case)
    return made


def plain(each: Measured) -> dict[str, Any]:
    """Figures of a run, and the bottleneck in words."""
    return {**each.figures, "bottleneck": str(each.bottleneck) if each.bottleneck else ""}


def details(each: Measured) -> dict[str, Any]:
    """What was used, all of it."""
    used = each.usage.to_dict() if each.usage else None
    return {"usage": used, "shares": each.bottleneck.to_dict() if each.bottleneck else None}
