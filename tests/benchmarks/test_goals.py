"""When a goal is met, and who says so: one place for all suites and for the loads."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.harness import keep
from benchmarks.harness.goals import HEAD, MET, NOT_MET, Bound, Goal
from benchmarks.harness.suites import Suite
from fastio.tables import EMPTY

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("relation", "reached", "met"),
    [
        ("≥", (2.0,), MET),
        ("≥", (1.999,), NOT_MET),
        ("≤", (2.0,), MET),
        ("≤", (2.001,), NOT_MET),
        ("≥", (2.0, 3.0), MET),
        ("≥", (1.9, 2.0), EMPTY),
        ("≥", (1.8, 1.9), NOT_MET),
        ("≤", (1.9, 2.1), EMPTY),
    ],
)
def test_a_figure_or_an_interval_is_judged(relation: str, reached: tuple[float, ...], met: str) -> None:
    assert Bound(relation, 2.0).met(*reached) == met


def test_a_line_has_the_bound_with_its_unit_and_no_verdict_without_a_figure() -> None:
    assert Goal("a", 1, 2.5, 2.5, "≥", 2, "x stock").row() == ["a", "1", "2.5", "≥ 2 x stock", "2.5 x stock", MET]
    assert Goal("a", 1, None, None, "≥", 2, "x stock").row() == ["a", "1", EMPTY, "≥ 2 x stock", EMPTY, EMPTY]


def test_nobody_else_says_it() -> None:
    found = [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "benchmarks").rglob("*.py"))
        if re.search(r'"yes" if [^\n]*[<>]=', path.read_text(encoding="utf-8"))
    ]
    assert found == []


def figure(cell: str) -> float | None:
    """The number at the beginning of a cell."""
    found = re.match(r"-?[\d.]+(e[+-]?\d+)?", cell.replace(",", ""))
    return float(found[0]) if found else None


RUNS = keep.runs()


@pytest.mark.parametrize("name", RUNS)
def test_what_a_suite_asks_is_judged_by_what_was_measured(name: str) -> None:
    """Of each goal of a kept result: what was reached follows from the two figures, and the verdict from that."""
    result = RUNS[name]
    for table in result.judged:
        if table.head[-3:] != list(HEAD[-3:]) or len(table.head) != len(HEAD):
            continue
        for what, stock, fastio, goal, reached, met in table.rows:
            relation, bound = goal.split()[:2]
            value, pair = figure(reached), (figure(stock), figure(fastio))
            if value is None:
                assert met == EMPTY, what
                continue
            # Both are rounded, so at the bound itself either will do.
            assert met == Bound(relation, float(bound)).met(value) or value == pytest.approx(float(bound), rel=0.01), (
                what
            )
            # Of the others, what is judged is the end of an interval, or a figure of which less is better.
            if result.suite in ("concurrency", "offered_load", "workload_matrix") and " x " in goal:
                before, after = pair
                assert before and after and value == pytest.approx(after / before, rel=0.1), what


def test_a_suite_asks_what_it_asked_when_it_was_measured() -> None:
    """Whatever can be computed of the medians that are kept is what the tables of that day say."""
    asked = 0
    for name, run in RUNS.items():
        # Without cases nothing is computed, and the matrix looks at the runs.
        if not run.cases or run.suite == "workload_matrix" or not find_spec(f"benchmarks.suites.{run.suite}"):
            continue
        made = {
            row[0]: row for table in Suite(run.suite).judged(run) for row in table.rows if tuple(table.head) == HEAD
        }
        for table in run.judged:
            for row in table.rows if tuple(table.head) == HEAD else ():
                again = made.get(row[0], [EMPTY])
                if again[-1] != EMPTY:
                    assert again == row, name
                    asked += 1
    assert asked > 100
