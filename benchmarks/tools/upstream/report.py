"""What was found, as tables for people, as markdown and as JSON."""

import importlib.metadata
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import fastio
from fastio import page
from fastio.tables import Table

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
        "format": 1,
        "versions": versions(),
        "machine": {"system": platform.platform(), "cpus": os.cpu_count()},
        "settings": settings,
        "suites": [
            # As it was called before.
            {**(found := suite_to_dict(comparison)), "modules": list(comparison.suite.modules), "patched": found["run"]}
            for comparison in comparisons
        ],
    }


def suite_to_dict(comparison: Comparison) -> dict[str, Any]:
    """What was found with one suite, as plain data."""
    return {
        "name": comparison.suite.name,
        "variant": comparison.other,
        "unavailable": comparison.unavailable,
        "stock": _run(comparison.stock),
        "run": _run(comparison.patched),
        "differences": [{**asdict(found), "verdict": found.verdict} for found in comparison.differences],
        "faults": comparison.faults,
        "failures": comparison.failures(),
    }


def _run(run: Run | None) -> dict[str, Any] | None:
    return None if run is None else {**asdict(run), "counts": run.counts()}


def summary(comparisons: Sequence[Comparison]) -> Table:
    """A line per run."""
    head = ["suite", "", "tests", *(heading for heading, _ in COUNTED), "seconds", "worse", "newly passing", "result"]
    rows = []
    for comparison in comparisons:
        name = comparison.suite.name
        if comparison.unavailable:
            rows.append([name, "", *[""] * (len(COUNTED) + 4), f"not run: {comparison.unavailable}"])
        for run in (comparison.stock, comparison.patched):
            if run is not None:
                rows.append([name, *_cells(run), *_verdict(comparison, run)])
    return Table("Upstream suites, patched against stock", head, rows)


def _cells(run: Run) -> list[str]:
    return ["patched" if run.patched else "stock", *outcomes_of(run), f"{run.seconds:.0f}"]


def outcomes_of(run: Run) -> list[str]:
    """How many tests there are, and how many of each column of :data:`COUNTED`."""
    counts = run.counts()
    return [str(len(run.tests)), *(str(sum(counts.get(each, 0) for each in outcomes)) for _, outcomes in COUNTED)]


def _verdict(comparison: Comparison, run: Run) -> list[str]:
    if not run.patched:
        return ["", "", ""]
    verdicts = [difference.verdict for difference in comparison.differences]
    result = "FAILED" if comparison.failures() else "passed"
    return [str(verdicts.count("worse")), str(verdicts.count("newly passing")), result]


def difference_table(comparisons: Sequence[Comparison]) -> Table:
    """A line per test whose outcome differs, the worse ones first."""
    head = ["verdict", "suite", "test", "stock", "patched", "alone, stock", "alone, patched"]
    found = [(comparison.suite.name, each) for comparison in comparisons for each in comparison.differences]
    found.sort(key=lambda pair: ("worse", "not reproduced", "changed", "newly passing").index(pair[1].verdict))
    rows = [
        [
            each.verdict, suite, short(each.test), each.stock.outcome, each.patched.outcome,
            joined(each.stock_alone), joined(each.patched_alone),
        ]
        for suite, each in found
    ]  # fmt: skip
    return Table("Differences", head, rows)


def remaining_table(comparisons: Sequence[Comparison]) -> Table:
    """A line per test that does not pass in the last run of its suite, with the last line of what it says."""
    rows = []
    for comparison in comparisons:
        run = comparison.patched or comparison.stock
        for test, outcome in run.tests.items() if run else ():
            if outcome.outcome not in ("pass", "skip", "xfail"):
                rows.append([comparison.suite.name, short(test), outcome.outcome, last_line(outcome)])
    return Table("Not passing", ["suite", "test", "outcome", "says"], rows)


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
    return [
        (each, each.patched.detail)
        for comparison in comparisons
        for each in comparison.differences
        if each.looks_worse()
    ]


def markdown(comparisons: Sequence[Comparison]) -> str:
    total = summary(comparisons)
    lead = [page.Text(", ".join(f"{name} {version}" for name, version in versions().items()))]
    sections = [page.Section("Runs", [replace(total, title="")])]
    for comparison in comparisons:
        if comparison.failures():
            sections.append(page.Section(f"{comparison.suite.name} fails", [page.Notes(comparison.failures())]))
    tables = [difference_table(comparisons), remaining_table(comparisons)]
    sections += [page.Section(each.title, [replace(each, title="")]) for each in tables if each.rows]
    for difference, text in tracebacks(comparisons):
        sections.append(page.Section(f"{difference.test} ({difference.verdict})", [page.Code(text)]))
    return page.markdown(total.title, sections, lead=lead)
