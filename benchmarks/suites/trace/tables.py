"""What tracing may cost, and whether it does."""

from collections.abc import Iterator, Sequence

from benchmarks.harness import statistics
from benchmarks.harness.goals import Bound
from benchmarks.harness.results import CaseResult, Result
from benchmarks.harness.tables import Table, number

#: Microseconds of CPU.
SPAN = Bound("≤", 10.0)
#: Share of the throughput that is left.
DOWNLOADS = Bound("≥", 0.99)
#: Width of the interval of that share from which on it can be judged.
WIDTH = 0.01


def sure(case: CaseResult) -> bool:
    """Whether the share of each row is known as well as it has to be; of rows that have failed it never will be."""
    able = [title for title, row in case.variants.items() if not (row.failure or row.skipped)]
    figures = [case.figures(title) for title in able]
    return all(len(each) >= statistics.FEW_ROUNDS and _width(kept(each)) < WIDTH for each in figures)


def kept(times: Sequence[float]) -> statistics.Interval:
    """The share of the throughput that is left, of how many times as long a download takes."""
    low, high = statistics.median_interval(times)
    return statistics.Interval(1 / statistics.median(times), 1 / high, 1 / low)


def _width(interval: statistics.Interval) -> float:
    return interval.high - interval.low


def judgement(result: Result) -> list[Table]:
    rows = [row for case in result.cases for row in _judged(case)]
    return [Table("What tracing may cost", ["figure", "may be", "is", "met"], rows)]


def _judged(case: CaseResult) -> Iterator[list[str]]:
    for title in case.variants:
        figures = case.figures(title)
        if not figures:
            continue
        if title in ("spans", "requests"):
            found = statistics.median(figures)
            yield [f"us of a span: {title}", str(SPAN), number(found), SPAN.met(found)]
        elif case.value == "times":
            share = kept(figures)
            shown = f"{share.ratio:.4f} ({share.low:.4f}–{share.high:.4f})"
            # A value that cannot be distinguished from the bound is not judged.
            met = DOWNLOADS.met(share.low, share.high)
            yield [f"{case.name}: {title}, traced", f"{DOWNLOADS} x untraced", shown, met]
