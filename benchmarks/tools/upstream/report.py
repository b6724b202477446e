"""The findings, as human-readable tables."""

from collections.abc import Iterator, Sequence

from fastio.tables import Table
from fastio.terminal import width

from .compare import Comparison
from .runner import Outcome, Run

#: Columns of the summary: heading, and the outcomes it counts.
COUNTED = (
    ("pass", ("pass", "xfail")),
    ("fail", ("fail", "xpass")),
    ("error", ("error",)),
    ("hang", ("hang",)),
    ("crash", ("crash", "missing")),
    ("skip", ("skip",)),
)


def tables(comparisons: Sequence[Comparison]) -> list[Table]:
    """Those that have rows: a line for each test that differs, and for each run."""
    head = ["suite", "", "tests", *(heading for heading, _ in COUNTED), "seconds", "worse", "newly passing", "result"]
    runs, differences = [], []
    for comparison in comparisons:
        name = comparison.suite.name
        if comparison.unavailable:
            runs.append([name, "", *[""] * (len(COUNTED) + 4), f"not run: {comparison.unavailable}"])
        for run in (comparison.stock, comparison.patched):
            if run is not None:
                side = "patched" if run.patched else "stock"
                cells = [name, side, *outcomes_of(run), f"{run.seconds:.0f}"]
                runs.append([*cells, *(_verdict(comparison) if run.patched else [""] * 3)])
        for each in sorted(comparison.differences, key=lambda each: each.verdict != "worse"):
            alone = (joined(each.stock_alone), joined(each.patched_alone))
            cells = [each.verdict, name, short(each.test), each.stock.outcome, each.patched.outcome]
            differences.append([*cells, *alone])
    made = [
        Table("Differences", ["verdict", "suite", "test", "stock", "patched", "alone, stock", "alone, patched"],
              differences),
        Table("Upstream suites, patched against stock", head, runs),
    ]  # fmt: skip
    return [table for table in made if table.rows]


def outcomes_of(run: Run) -> list[str]:
    """How many tests there are, and how many of each column of :data:`COUNTED`."""
    counts = run.counts()
    return [str(len(run.tests)), *(str(sum(counts.get(each, 0) for each in outcomes)) for _, outcomes in COUNTED)]


def _verdict(comparison: Comparison) -> list[str]:
    verdicts = [difference.verdict for difference in comparison.differences]
    result = "FAILED" if comparison.failures() else "passed"
    return [str(verdicts.count("worse")), str(verdicts.count("newly passing")), result]


def short(test: str) -> str:
    """Module, class and method, without the packages."""
    return ".".join(test.split(".")[-3:])


def last_line(outcome: Outcome) -> str:
    lines = outcome.detail.strip().splitlines() if outcome.outcome in ("fail", "error") else []
    return lines[-1][:110] if lines else ""


def joined(outcomes: Sequence[Outcome]) -> str:
    return ", ".join(outcome.outcome for outcome in outcomes)


def lines(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """All of it for a terminal, the judgement last."""
    *others, runs = tables(comparisons)
    yield from (f"\n{table.text(width())}" for table in others)
    for found in (each for comparison in comparisons for each in comparison.differences if each.looks_worse()):
        yield f"\n{found.test} ({found.verdict}):\n{found.patched.detail}"
    yield f"\n{runs.text(width())}"
    for comparison in comparisons:
        yield from (f"{comparison.suite.name}: {failure}" for failure in comparison.failures())
