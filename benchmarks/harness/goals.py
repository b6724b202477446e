"""The goals of fastio, beside what a result has: the lines of a table, for all suites that have one."""

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from benchmarks.harness.tables import EMPTY, number
from fastio.tables import Table

HEAD = ("", "stock", "fastio", "goal", "reached", "met")

_RELATIONS: Mapping[str, Callable[[float, float], bool]] = {"≥": operator.ge, "≤": operator.le}


@dataclass(frozen=True)
class Goal:
    """One line: two figures, and the goal of fastio's, of their ratio, or of something computed of them."""

    what: str
    #: stock's figure, or that of a reference
    stock: float | None
    fastio: float | None
    #: what is judged
    reached: float | None
    relation: str
    bound: float
    #: what ``reached`` is
    unit: str

    def row(self) -> list[str]:
        met = EMPTY
        if self.reached is not None:
            met = "yes" if _RELATIONS[self.relation](self.reached, self.bound) else "no"
        return [
            self.what, number(self.stock), number(self.fastio), f"{self.relation} {self.bound:g} {self.unit}",
            EMPTY if self.reached is None else f"{number(self.reached)} {self.unit}", met,
        ]  # fmt: skip


def goal_ratio(
    what: str, stock: float | None, fastio: float | None, relation: str, bound: float, unit: str = "x stock"
) -> Goal:
    """A goal of the ratio of the two figures."""
    return Goal(what, stock, fastio, fastio / stock if stock and fastio is not None else None, relation, bound, unit)


def goal_table(title: str, goals: Iterable[Goal]) -> Table:
    return Table(title, list(HEAD), [goal.row() for goal in goals])
