"""When a goal is met, and who says so: one place for all suites and for the loads."""

import re
from pathlib import Path

import pytest

from benchmarks.harness.goals import MET, NOT_MET, Bound, Goal
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
