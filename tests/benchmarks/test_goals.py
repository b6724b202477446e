"""When a goal is met: one place decides for all suites and for the loads."""

from importlib.util import find_spec

import pytest

from benchmarks.harness import keep
from benchmarks.harness.goals import HEAD, MET, NOT_MET, Bound, Goal
from benchmarks.harness.suites import Suite
from fastio.tables import EMPTY


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


RUNS = keep.runs()


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
