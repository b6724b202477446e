"""The findings, as human-readable tables."""

import re
from collections.abc import Iterator, Sequence

from fastio.tables import EMPTY, Table
from fastio.terminal import width

from . import compare
from .compare import VERDICTS, Comparison
from .runner import Outcome, Run

#: Columns of the summary: heading, and the outcomes it counts.
COUNTED = {
    "pass": ("pass", "xfail"),
    "fail": ("fail", "xpass"),
    "error": ("error",),
    "hang": ("hang",),
    "crash": ("crash", "missing"),
    "skip": ("skip",),
}
#: Characters of what a test says.
MOST_SAID = 110
#: As a traceback ends.
_EXCEPTION = re.compile(r"[\w.]+(Error|Exception|Expired)\b")


def suites(comparisons: Sequence[Comparison]) -> Table:
    """A line for each run of a suite."""
    head = ["suite", "variant", "tests", *COUNTED, "seconds", *VERDICTS, "result"]
    rows: dict[tuple[str, str], list[str]] = {}
    for each in comparisons:
        name = each.suite.name
        if each.stock is not None:
            rows[name, "stock"] = [*_counts(each.stock), *[""] * (len(VERDICTS) + 1)]
        rows[name, each.variant] = [*_counts(each.patched), *_judged(each)]
    return Table("Suites", head, [[*key, *cells] for key, cells in rows.items()])


def _counts(run: Run | None) -> list[str]:
    """How many tests there are, how many of each column of :data:`COUNTED`, and how long they took."""
    if run is None:
        return [EMPTY] * (len(COUNTED) + 2)
    counts = run.counts()
    counted = (sum(counts.get(each, 0) for each in outcomes) for outcomes in COUNTED.values())
    return [*map(str, (len(run.tests), *counted)), f"{run.seconds:.0f}"]


def _judged(comparison: Comparison) -> list[str]:
    if comparison.unavailable:
        return [*[EMPTY] * len(VERDICTS), f"not run: {comparison.unavailable}"]
    found = [str(len(comparison.found(verdict))) for verdict in VERDICTS]
    return [*found, "FAILED" if comparison.failures() else _no_worse(comparison.patched)]


def _no_worse(run: Run | None) -> str:
    # In stock too, or not when run alone; such a test proves nothing, and must not look like one that passes.
    hangs = run.counts().get("hang", 0) if run else 0
    return f"no worse, but {hangs} hang" if hangs else "no worse"


def differences(comparisons: Sequence[Comparison]) -> Table:
    """A line for each test whose outcome is not stock's, those that newly fail first."""
    head = ["", "variant", "suite", "test", "stock", "here", "alone, stock", "alone, here", "says"]
    rows = [
        [
            verdict, each.variant, each.suite.name, _short(found.test), found.stock.outcome, found.patched.outcome,
            _joined(found.stock_alone), _joined(found.patched_alone), _says(found.patched),
        ]
        for verdict in VERDICTS
        for each in comparisons
        for found in each.found(verdict)
    ]  # fmt: skip
    notes = [
        f"Newly fails: worse than in stock, where it was run alone in {compare.BELIEVED} of {compare.RERUNS} runs too.",
        "Flaky: not so when alone.",
        "Changed: neither better nor worse, or a test that the candidate no longer has.",
    ]
    return Table("Tests whose outcome differs", head, rows, notes)


def _short(test: str) -> str:
    """Module, class and method, without the packages."""
    return ".".join(test.split(".")[-3:])


def _joined(outcomes: Sequence[Outcome]) -> str:
    return ", ".join(outcome.outcome for outcome in outcomes)


def _says(outcome: Outcome) -> str:
    """The line of a traceback that has the exception; unittest may put a long comparison below it."""
    lines = outcome.detail.strip().splitlines() if outcome.outcome in ("fail", "error") else []
    return next((line for line in reversed(lines) if _EXCEPTION.match(line)), lines[-1] if lines else "")[:MOST_SAID]


def lines(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """All of it for a terminal, the judgement last."""
    found = differences(comparisons)
    if found.rows:
        yield f"\n{found.text(width())}"
    for each in (each for comparison in comparisons for each in comparison.differences if each.looks_worse()):
        yield f"\n{each.test} ({each.verdict}):\n{each.patched.detail}"
    yield f"\n{suites(comparisons).text(width())}"
    for comparison in comparisons:
        yield from comparison.failures()
