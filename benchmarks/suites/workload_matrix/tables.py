"""The tables of the workload matrix: the bottlenecks of the workloads by number, and the study's finding."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from benchmarks.harness.goals import HEAD, Goal, goal_table
from benchmarks.harness.results import CaseResult, Result, VariantResult
from benchmarks.harness.tables import Table
from benchmarks.load.report import bottlenecks
from benchmarks.suites.workload_matrix.bench_workload_matrix import FINDING, PROCESSORS, ratio, shown

#: Bandwidth that servers with fewer processors have to lose where these are the limit, and may lose where they are not.
LOST, KEPT = 0.9, 0.95


class Workload(NamedTuple):
    """One of the matrix, by its number."""

    number: int
    size: int
    workers: int
    reads: int
    #: MiB/s, the median of its runs
    bandwidth: float
    row: VariantResult
    #: of the last run: resource, words, the shares of all resources
    bottleneck: Mapping[str, Any]


def workloads(result: Result) -> list[Workload]:
    """Return the cells of the matrix that were measured; the numbers are of all that it has, in its order."""
    found = []
    count = 0
    for case in result.cases:
        if case.name in FINDING or case.workload != "workload_matrix":
            continue
        for title, row in case.variants.items():
            count += 1
            if not case.rounds(title):
                continue
            parameters = row.parameters
            found.append(
                Workload(
                    count, parameters["size"], parameters["workers"], parameters["reads"],
                    case.median(title) or 0.0, row, row.details.get("shares") or {},
                )
            )  # fmt: skip
    return found


def judgement(result: Result) -> list[Table]:
    rows = [(f"{each.number}: {_name(each)}", each.bottleneck) for each in workloads(result)]
    for case in _findings(result):
        rows += [(f"{case.name}, {title}", row.details.get("shares") or {}) for title, row in case.variants.items()]
    return [bottlenecks(rows), goals(result)]


def _name(each: Workload) -> str:
    return f"{shown(each.size)}, {each.workers} worker{'s' * (each.workers != 1)}, {ratio(each.reads)}"


def goals(result: Result) -> Table:
    """Whether less is lost or not, as the study says."""
    made = goal_table("What the study found", _goals(result))
    made.head = ["", "all cores", "fewer", *HEAD[3:]]
    return made


def _goals(result: Result) -> Iterator[Goal]:
    for case in _findings(result):
        limited = FINDING[case.name]
        bound = ("≤", LOST) if limited else ("≥", KEPT)
        for title in list(PROCESSORS)[1:]:
            base, fewer = case.median("all-cores"), case.median(title)
            if base and fewer:
                what = f"{case.name}: MiB/s, {title}, where processors are {'' if limited else 'not '}the limit"
                yield Goal(what, base, fewer, fewer / base, *bound, "x all cores")


def _findings(result: Result) -> Iterator[CaseResult]:
    for case in result.cases:
        if case.name in FINDING:
            yield case
