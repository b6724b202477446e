"""Compares a patched run with the stock run of the same suite, and makes sure before it blames the patch."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from .runner import Outcome, Run
from .suites import Suite

#: The worse of two outcomes has the higher number; equals are merely different.
SEVERITY = {
    "pass": 0, "xfail": 0, "skip": 1, "xpass": 2, "fail": 2, "error": 2, "hang": 3, "crash": 3, "missing": 3,
}  # fmt: skip

#: What counts against :attr:`Suite.at_most`.
NOT_PASSING = frozenset({"xpass", "fail", "error", "hang", "crash", "missing"})

#: How often at most a test that looks worse is run alone, stock and patched, and in how many of these runs it has to
#: be worse to be believed: upstream has tests that fail now and then.
RERUNS, BELIEVED = 5, 4

#: How many times the usual limit a test may take that is run alone: slow is not hanging.
SLACK = 4

#: Outcomes in ``fastio.status()`` that mean that a patch which was asked for is not in force.
NOT_IN_FORCE = frozenset({"unsupported version", "changed upstream code", "failed"})


@dataclass
class Difference:
    """A test with two outcomes."""

    test: str
    stock: Outcome
    patched: Outcome
    #: the outcomes of running it alone, where that was done
    stock_alone: list[Outcome] = field(default_factory=list)
    patched_alone: list[Outcome] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """``worse``; ``not reproduced`` (so in the whole suite, alone now and then at most); ``newly passing``; or
        ``changed``.
        """
        if self.looks_worse():
            return "worse" if self._worse_alone() else "not reproduced"
        if not self._differs_alone():
            return "not reproduced"
        better = SEVERITY[self.patched.outcome] < SEVERITY[self.stock.outcome]
        return "newly passing" if better and self.patched.outcome == "pass" else "changed"

    def looks_worse(self) -> bool:
        if self.stock.outcome == "missing":
            # A test that stock does not have; it is the other one's own, and has to pass there.
            return self.patched.outcome in NOT_PASSING
        return SEVERITY[self.patched.outcome] > SEVERITY[self.stock.outcome]

    def alone(self) -> tuple[int, int]:
        """How many of its runs alone were worse than the worst of stock's, and how many were not."""
        worse = sum(map(self._is_worse, self.patched_alone))
        return worse, len(self.patched_alone) - worse

    def _is_worse(self, rerun: Outcome) -> bool:
        if self.stock.outcome == "missing":
            return rerun.outcome in NOT_PASSING
        return SEVERITY[rerun.outcome] > max((SEVERITY[each.outcome] for each in self.stock_alone), default=0)

    def _worse_alone(self) -> bool:
        # Believed until shown otherwise, also without reruns.
        return self.alone()[1] <= RERUNS - BELIEVED

    def _differs_alone(self) -> bool:
        alone = ({rerun.outcome for rerun in reruns} for reruns in (self.stock_alone, self.patched_alone))
        return not self.patched_alone or set.isdisjoint(*alone)


@dataclass
class Comparison:
    """One suite, stock against patched."""

    suite: Suite
    #: the side that is compared with stock
    other: str = "patched"
    stock: Run | None = None
    patched: Run | None = None
    differences: list[Difference] = field(default_factory=list)
    #: what a patched run must show and did not
    faults: list[str] = field(default_factory=list)
    #: why the suite was not run
    unavailable: str = ""

    def failures(self) -> list[str]:
        """Why this comparison does not pass, a line each; empty where it does."""
        worse = [
            f"{difference.test}: {difference.stock.outcome} -> {difference.patched.outcome}"
            for difference in self.differences
            if difference.verdict == "worse"
        ]
        return worse + self.faults


def differences(stock: Run, patched: Run) -> list[Difference]:
    """The tests whose outcomes differ, in stock's order; a test that only one run knows is ``missing`` in the other."""
    tests = list(dict.fromkeys([*stock.tests, *patched.tests]))
    pairs = ((test, stock.tests.get(test), patched.tests.get(test)) for test in tests)
    return [
        Difference(test, before or Outcome("missing"), after or Outcome("missing"))
        for test, before, after in pairs
        if before is None or after is None or before.outcome != after.outcome
    ]


#: Runs a test alone, in stock or (True) on the other side, and tells what became of it.
Alone = Callable[[bool, str], Outcome]


def confirm(alone: Alone, difference: Difference) -> None:
    """Run a test alone, in stock and on the other side in turn; a module's or class's fixture cannot be."""
    if difference.test.endswith(")"):
        return
    for _ in range(RERUNS):
        difference.stock_alone.append(alone(False, difference.test))
        difference.patched_alone.append(alone(True, difference.test))
        worse, not_worse = difference.alone()
        if worse == BELIEVED or not_worse > RERUNS - BELIEVED:
            return


def hanging(suite: Suite, patched: Run) -> list[str]:
    """The tests that hung in a patched run and may not."""
    return [
        test
        for test, outcome in patched.tests.items()
        if outcome.outcome == "hang" and any(part in test for part in suite.never_hang)
    ]


def by_chance(alone: Alone, comparison: Comparison) -> set[str]:
    """The tests that do not pass in the patched run but do alone.

    Those are looked at that look worse, that may not hang, and, if more do not pass than may, all of these: on a busy
    machine upstream's tests may fail in stock as well.
    """
    suite, patched = comparison.suite, comparison.patched
    assert patched is not None
    found = {difference.test for difference in comparison.differences if difference.verdict == "not reproduced"}
    for test in hanging(suite, patched):
        if test not in found and alone(True, test).outcome != "hang":
            found.add(test)
    left = _not_passing(patched, found)
    if suite.at_most is not None and len(left) > suite.at_most:
        # A module's or class's fixture cannot be run alone.
        found |= {test for test in left if not test.endswith(")") and alone(True, test).outcome not in NOT_PASSING}
    return found


def _not_passing(run: Run, chance: Collection[str]) -> list[str]:
    return [test for test, outcome in run.tests.items() if outcome.outcome in NOT_PASSING and test not in chance]


def faults(suite: Suite, patched: Run, chance: Collection[str] = ()) -> list[str]:
    """What shows that a patched run did not test fastio, or that it misses the suite's goals; a line each.

    :param chance: the tests that did not pass by chance
    """
    found = []
    if patched.status is None:
        found.append("the last worker ended without a status")
    else:
        entries = patched.status["patches"]
        in_force = {entry["name"] for entry in entries if entry["outcome"] == "applied"}
        found += [f"patch {name} is not applied at the end" for name in suite.applied if name not in in_force]
        found += [
            f"patch {entry['name']} ({entry['target']}) is {entry['outcome']}: {entry['found']}"
            for entry in entries
            if entry["outcome"] in NOT_IN_FORCE and entry["target"].partition(":")[0] not in suite.replaced
        ]
    if suite.exchanges and not patched.exchanges:
        found.append("no exchange went through fastio: the patched run tested the stock code")
    found += [
        f"patch {name} took no call: the patched run tested the stock code"
        for name in suite.taken
        if not patched.taken.get(name)
    ]
    passing = sum(outcome.outcome == "pass" for outcome in patched.tests.values())
    if passing < suite.at_least:
        found.append(f"{passing} tests pass when patched, at least {suite.at_least} must")
    not_passing = _not_passing(patched, chance)
    if suite.at_most is not None and len(not_passing) > suite.at_most:
        found.append(f"{len(not_passing)} tests do not pass when patched, at most {suite.at_most} may")
    found += [f"{test} hangs when patched" for test in hanging(suite, patched) if test not in chance]
    return found
