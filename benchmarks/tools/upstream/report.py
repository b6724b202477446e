"""What was found, as tables for people, as markdown and as JSON."""

import importlib.metadata
import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import fastio
from benchmarks.harness import markup
from fastio.tables import Table
from fastio.terminal import width

from .compare import Comparison, Difference
from .runner import Outcome, Run

#: Distributions whose versions belong to a result.
DISTRIBUTIONS = ("eventlet", "greenlet", "oslo.concurrency", "oslotest", "wrapt")

#: Columns of the summary: heading, and the outcomes it counts.
COUNTED = (
    ("pass", ("pass", "xfail")),
    ("fail", ("fail", "xpass")),
    ("error", ("error",)),
    ("hang", ("hang",)),
    ("crash", ("crash", "missing")),
    ("skip", ("skip",)),
)


def versions() -> dict[str, str]:
    """What ran: Python, fastio, and the distributions that are installed."""
    found = {"python": platform.python_version(), "fastio": fastio.__version__}
    for name in DISTRIBUTIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def to_dict(comparisons: Sequence[Comparison], settings: dict[str, Any]) -> dict[str, Any]:
    """Everything, as plain data.

    :param settings: how the runner was called: limit per test in seconds, jobs …
    """
    return {
        "format": 2, "versions": versions(), "machine": {"system": platform.platform(), "cpus": os.cpu_count()},
        "settings": settings, "suites": list(map(suite_to_dict, comparisons)),
    }  # fmt: skip


def suite_to_dict(comparison: Comparison) -> dict[str, Any]:
    """What was found with one suite, as plain data."""
    runs = {"stock": comparison.stock, "run": comparison.patched}
    return {
        "name": comparison.suite.name,
        "variant": comparison.other,
        "unavailable": comparison.unavailable,
        **{name: None if run is None else {**asdict(run), "counts": run.counts()} for name, run in runs.items()},
        "differences": [{**asdict(found), "verdict": found.verdict} for found in comparison.differences],
        "faults": comparison.faults,
        "failures": comparison.failures(),
    }


def tables(comparisons: Sequence[Comparison]) -> list[Table]:
    """Those that have rows: a line for each test that differs, for each that does not pass, and for each run."""
    head = ["suite", "", "tests", *(heading for heading, _ in COUNTED), "seconds", "worse", "newly passing", "result"]
    runs, differences, remaining = [], [], []
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
        last = comparison.patched or comparison.stock
        for test, outcome in last.tests.items() if last else ():
            if outcome.outcome not in ("pass", "skip", "xfail"):
                remaining.append([name, short(test), outcome.outcome, last_line(outcome)])
    made = [
        Table("Differences", ["verdict", "suite", "test", "stock", "patched", "alone, stock", "alone, patched"],
              differences),
        Table("Not passing", ["suite", "test", "outcome", "says"], remaining),
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


def tracebacks(comparisons: Sequence[Comparison]) -> list[tuple[Difference, str]]:
    """The tests that are worse or could not be reproduced, each with what its patched run says."""
    found = [each for comparison in comparisons for each in comparison.differences if each.looks_worse()]
    return [(each, each.patched.detail) for each in found]


def lines(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """All of it for a terminal, the judgement last."""
    *others, runs = tables(comparisons)
    yield from (f"\n{table.text(width())}" for table in others)
    yield from (f"\n{each.test} ({each.verdict}):\n{text}" for each, text in tracebacks(comparisons))
    yield f"\n{runs.text(width())}"
    for comparison in comparisons:
        yield from (f"{comparison.suite.name}: {failure}" for failure in comparison.failures())


def markdown(comparisons: Sequence[Comparison]) -> str:
    """All of it as text of a comment."""
    parts = [", ".join(f"{name} {version}" for name, version in versions().items())]
    parts += [markup.markdown(table) for table in reversed(tables(comparisons))]
    parts += [f"* {each.suite.name}: {failure}" for each in comparisons for failure in each.failures()]
    parts += [f"{each.test} ({each.verdict}):\n\n```\n{text}\n```" for each, text in tracebacks(comparisons)]
    return "\n\n".join(parts) + "\n"
