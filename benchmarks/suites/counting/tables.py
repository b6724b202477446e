"""What a count may cost, and whether it does."""

from benchmarks.harness import statistics
from benchmarks.harness.goals import Bound
from benchmarks.harness.results import Result
from benchmarks.harness.tables import Table, number

#: Nanoseconds of CPU.
MOST = Bound("≤", 100.0)


def judgement(result: Result) -> list[Table]:
    (case,) = result.cases
    found = {title: statistics.median(case.figures(title)) for title in case.variants if case.figures(title)}
    rows = [[title, str(MOST), number(value), MOST.met(value)] for title, value in found.items()]
    return [Table("What a count may cost", ["counted by", "ns may be", "ns are", "met"], rows)]
