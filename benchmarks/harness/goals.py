"""Goals: when one is met, and the lines of a table of fastio's goals, for all suites that have one."""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import TypeAlias

from benchmarks.harness.results import CaseResult, Result
from fastio.tables import EMPTY, Table, number

HEAD = ("", "stock", "fastio", "goal", "reached", "met")
MET, NOT_MET = "yes", "no"

_RELATIONS: Mapping[str, Callable[[float, float], bool]] = {"≥": operator.ge, "≤": operator.le}


@dataclass(frozen=True)
class Bound:
    """A limit that a figure has to reach."""

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
    #: the judged value
    reached: float | None
    relation: str
    bound: float
    #: unit of ``reached``
    unit: str

    def row(self) -> list[str]:
        bound = Bound(self.relation, self.bound)
        reached, met = EMPTY, EMPTY
        if self.reached is not None:
            reached, met = f"{number(self.reached)} {self.unit}", bound.met(self.reached)
        return [self.what, number(self.stock), number(self.fastio), f"{bound} {self.unit}", reached, met]


def goal_table(title: str, goals: Iterable[Goal]) -> Table:
    return Table(title, list(HEAD), [goal.row() for goal in goals])


def times(stock: float | None, fastio: float) -> float | None:
    return fastio / stock if stock else None


def longer(stock: float | None, fastio: float) -> float | None:
    return None if stock is None else fastio - stock


def alone(stock: float | None, fastio: float) -> float | None:
    return fastio


@dataclass(frozen=True)
class Asked:
    """A goal of two rows, in each case whose name matches; suites list theirs as ``GOALS``.

    :param what: its name, with ``{case}`` for that of the case
    :param stock: the row that fastio's is compared with; of several, the one with the smallest figure
    :param fastio: a case without this row has no such goal
    :param key: of another figure of the runs than the case's
    :param stock_key: key in the row that fastio's is compared with, if it differs
    :param less: a row whose figure is not to count in fastio's
    :param of: the judged function of the two figures: their ratio by default
    """

    what: str
    relation: str
    bound: float
    stock: str | Sequence[str] = "stock"
    fastio: str = "fastio"
    key: str = ""
    unit: str = "x stock"
    cases: str = "*"
    stock_key: str | None = None
    less: str = ""
    of: Callable[[float | None, float], float | None] = times

    def goal(self, case: CaseResult) -> Goal:
        rows = [self.stock] if isinstance(self.stock, str) else self.stock
        key = self.key if self.stock_key is None else self.stock_key
        stock = min((each for row in rows if (each := case.median(row, key)) is not None), default=None)
        fast = case.median(self.fastio, self.key)
        if self.less and fast is not None:
            without = case.median(self.less, self.key)
            fast = None if without is None else fast - without
        reached = None if fast is None else self.of(stock, fast)
        return Goal(self.what.format(case=case.name), stock, fast, reached, self.relation, self.bound, self.unit)


#: A goal of two rows, or what gives goals of a whole result.
Wanted: TypeAlias = Asked | Callable[[Result], Iterable[Goal]]


def asked(result: Result, wanted: Sequence[Wanted]) -> Table:
    """The goals of a result."""
    made: list[Goal] = []
    for each in wanted:
        if isinstance(each, Asked):
            cases = (case for case in result.cases if fnmatch(case.name, each.cases) and each.fastio in case.variants)
            made += map(each.goal, cases)
        else:
            made += each(result)
    return goal_table("Goals", made)
