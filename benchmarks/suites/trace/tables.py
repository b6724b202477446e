"""The limits of tracing's cost, and whether they are kept."""

from collections.abc import Iterator

from benchmarks.harness import statistics
from benchmarks.harness.goals import Bound
from benchmarks.harness.results import CaseResult, Result
from benchmarks.harness.tables import Table, number
from benchmarks.suites.never_slower.tables import compared

#: Microseconds of CPU.
SPAN = Bound("≤", 10.0)
#: Share of the throughput that is left.
DOWNLOADS = Bound("≥", 0.99)


def judgement(result: Result) -> list[Table]:
    rows = [row for case in result.cases for row in _judged(case)]
    return [Table("Cost of tracing", ["figure", "may be", "is", "met"], rows)]


def _judged(case: CaseResult) -> Iterator[list[str]]:
    for title in ("spans", "requests"):
        if figures := case.figures(title):
            found = statistics.median(figures)
            yield [f"us of a span: {title}", str(SPAN), number(found), SPAN.met(found)]
    for each in compared([case]) if case.workload == "never_slower" else ():
        low, high = each.times.low, each.times.high
        shown = f"{each.times.ratio:.4f} ({low:.4f}–{high:.4f})"
        # A value that cannot be distinguished from the bound is not judged.
        yield [f"{case.name}: traced", f"{DOWNLOADS} x untraced", shown, DOWNLOADS.met(low, high)]
