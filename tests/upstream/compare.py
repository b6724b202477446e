"""Compares a patched run with the stock run of the same suite, and makes sure before it blames the patch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .runner import Outcome, Run, Runner, SuiteError
from .suites import Suite

#: The worse of two outcomes has the higher number; equals are merely different.
SEVERITY = {
    "pass": 0,
    "xfail": 0,
    "skip": 1,
    "xpass": 2,
    "fail": 2,
    "error": 2,
    "hang": 3,
    "crash": 3,
    "missing": 3,
}

#: What counts against :attr:`Suite.at_most`.
NOT_PASSING = frozenset({"xpass", "fail", "error", "hang", "crash", "missing"})

#: How often a test that looks worse is run alone, stock and patched, before it is believed.
RERUNS = 2

#: Outcomes in ``fastio.status()`` that mean that a patch which was asked for is not in force.
NOT_IN_FORCE = frozenset(
    {"unsupported version", "changed upstream code", "shadowed by another wrapper", "reverted", "failed"}
)


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
        """``worse``; ``not reproduced`` (so in the whole suite only); ``newly passing``; or ``changed``."""
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

    def _worse_alone(self) -> bool:
        # Believed until shown otherwise: without reruns, or when one of them is worse than all of stock's.
        if not self.patched_alone:
            return True
        if self.stock.outcome == "missing":
            return any(rerun.outcome in NOT_PASSING for rerun in self.patched_alone)
        worst_patched = max(SEVERITY[rerun.outcome] for rerun in self.patched_alone)
        worst_stock = max((SEVERITY[rerun.outcome] for rerun in self.stock_alone), default=0)
        return worst_patched > worst_stock

    def _differs_alone(self) -> bool:
        alone = ({rerun.outcome for rerun in reruns} for reruns in (self.stock_alone, self.patched_alone))
        return not self.patched_alone or set.isdisjoint(*alone)


@dataclass
class Comparison:
    """One suite, stock against patched, or stock alone."""

    suite: Suite
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


def confirm(runner: Runner, suite: Suite, difference: Difference, say: Callable[[str], None]) -> None:
    """Run a test alone, stock and patched in turn; a module's or class's fixture can not be."""
    if difference.test.endswith(")"):
        return
    for number in range(RERUNS):
        for patched, outcomes in ((False, difference.stock_alone), (True, difference.patched_alone)):
            say(f"again {'patched' if patched else 'stock'} {number + 1}/{RERUNS}: {difference.test}")
            try:
                outcome = runner.run(suite, patched, only=[difference.test]).tests[difference.test]
            except SuiteError as error:
                outcome = Outcome("crash", detail=str(error))
            outcomes.append(outcome)


def faults(suite: Suite, patched: Run) -> list[str]:
    """What shows that a patched run did not test fastio, or that it misses the suite's goals; a line each."""
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
    passing = sum(outcome.outcome == "pass" for outcome in patched.tests.values())
    if passing < suite.at_least:
        found.append(f"{passing} tests pass when patched, at least {suite.at_least} must")
    not_passing = [test for test, outcome in patched.tests.items() if outcome.outcome in NOT_PASSING]
    if suite.at_most is not None and len(not_passing) > suite.at_most:
        found.append(f"{len(not_passing)} tests do not pass when patched, at most {suite.at_most} may")
    found += [
        f"{test} hangs when patched"
        for test, outcome in patched.tests.items()
        if outcome.outcome == "hang" and any(part in test for part in suite.never_hang)
    ]
    return found
