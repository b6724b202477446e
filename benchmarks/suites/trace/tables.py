"""What tracing may cost, and whether it does."""

from collections.abc import Iterator

from benchmarks.harness import statistics
from benchmarks.harness.goals import Bound
from benchmarks.harness.results import CaseResult, Result
from benchmarks.harness.tables import Table, number

#: Microseconds of CPU.
EVENT = Bound("≤", 3.0)
#: Share of the throughput that is left.
DOWNLOADS = Bound("≥", 0.99)


def judgement(result: Result) -> list[Table]:
    rows = [row for case in result.cases for row in _judged(case)]
    return [Table("What tracing may cost", ["figure", "may be", "is", "met"], rows)]


def _judged(case: CaseResult) -> Iterator[list[str]]:
    for title in case.variants:
        figures = case.figures(title)
        if not figures:
            continue
        if title in ("spans", "points", "requests"):
            found = statistics.median(figures)
            yield [f"us of an event: {title}", str(EVENT), number(found), EVENT.met(found)]
        elif title.endswith(", traced") and case.figures(case.against(title)):
            kept = statistics.ratio(figures, case.figures(case.against(title)))
            # A value that cannot be distinguished from the bound is not judged.
            met = DOWNLOADS.met(kept.low, kept.high)
            yield [f"{case.name}: {title}", f"{DOWNLOADS} x untraced", str(kept), met]
