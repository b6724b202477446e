"""Goals: when one is met, and the lines of a table of fastio's goals, for all suites that have one."""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch

from benchmarks.harness.results import Result
from fastio.tables import EMPTY, Table, number

HEAD = ("", "stock", "fastio", "goal", "reached", "met")
MET, NOT_MET = "yes", "no"

_RELATIONS: Mapping[str, Callable[[float, float], bool]] = {"≥": operator.ge, "≤": operator.le}


@dataclass(frozen=True)
class Bound:
    """What a figure has to reach."""

    #: "≥" or "≤"
    relation: str
    value: float

    def __str__(self) -> str:
        return f"{self.relation} {self.value:g}"

    def met(self, *reached: float) -> str:
        """Yes or no, as the tables have it; of the two ends of an interval, neither if they do not agree."""
        found = {_RELATIONS[self.relation](each, self.value) for each in reached}
        return EMPTY if len(found) > 1 else MET if found == {True} else NOT_MET


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
        bound = Bound(self.relation, self.bound)
        reached, met = EMPTY, EMPTY
        if self.reached is not None:
            reached, met = f"{number(self.reached)} {self.unit}", bound.met(self.reached)
        return [self.what, number(self.stock), number(self.fastio), f"{bound} {self.unit}", reached, met]


def goal_ratio(
    what: str, stock: float | None, fastio: float | None, relation: str, bound: float, unit: str = "x stock"
) -> Goal:
    """A goal of the ratio of the two figures."""
    return Goal(what, stock, fastio, fastio / stock if stock and fastio is not None else None, relation, bound, unit)


def goal_table(title: str, goals: Iterable[Goal]) -> Table:
    return Table(title, list(HEAD), [goal.row() for goal in goals])


@dataclass(frozen=True)
class Ratio:
    """A goal of the ratio of two rows, in each case whose name matches; suites list theirs as ``GOALS``.

    :param what: its name, with ``{case}`` for that of the case
    :param stock: the row that fastio's is compared with; of several, the one with the smallest figure
    :param key: of another figure of the runs than the case's
    """

    what: str
    relation: str
    bound: float
    stock: str | Sequence[str] = "stock"
    fastio: str = "fastio"
    key: str = ""
    unit: str = "x stock"
    cases: str = "*"


def ratios(result: Result, wanted: Sequence[Ratio]) -> Table:
    """The goals of a result, case by case."""
    made = []
    for case in result.cases:
        for each in wanted:
            if fnmatch(case.name, each.cases):
                rows = [each.stock] if isinstance(each.stock, str) else each.stock
                known = (case.median(row, each.key) for row in rows)
                stock = min((figure for figure in known if figure is not None), default=None)
                what = each.what.format(case=case.name)
                fast = case.median(each.fastio, each.key)
                made.append(goal_ratio(what, stock, fast, each.relation, each.bound, each.unit))
    return goal_table("Goals", made)
