"""Compares a patched run with the stock run of the same suite, and makes sure before it blames the patch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .runner import Outcome, Run
from .suites import Suite

#: The worse of two outcomes has the higher number; equals are merely different.
SEVERITY = {
    "pass": 0, "xfail": 0, "skip": 1, "xpass": 2, "fail": 2, "error": 2, "hang": 3, "crash": 3, "missing": 3,
}  # fmt: skip

#: How often at most a test that looks worse is run alone, stock and patched, and in how many of these runs it has to
#: be worse to be believed: upstream has tests that fail now and then.
RERUNS, BELIEVED = 5, 4

#: How many times the usual limit a test may take that is run alone: slow is not hanging.
SLACK = 4

#: How a test may differ from stock, the worst first.
VERDICTS = WORSE, BETTER, CHANGED, FLAKY = "newly fails", "newly passes", "changed", "flaky"

#: Outcomes in ``fastio.status()`` that mean that a patch which was asked for is not in force.
NOT_IN_FORCE = frozenset({"unsupported version", "changed upstream code", "failed"})


def passes(outcome: Outcome) -> bool:
    """Whether a test passes, as expected or by not being run."""
    return SEVERITY[outcome.outcome] < 2


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
        """One of :data:`VERDICTS`. A flaky test differs in the whole suite, and alone now and then at most."""
        if self.looks_worse():
            # Believed until shown otherwise, also without reruns.
            return WORSE if self.alone()[1] <= RERUNS - BELIEVED else FLAKY
        if self.patched_alone and {each.outcome for each in self.stock_alone} & {
            each.outcome for each in self.patched_alone
        }:
            return FLAKY
        better = SEVERITY[self.patched.outcome] < SEVERITY[self.stock.outcome]
        return BETTER if better and self.patched.outcome == "pass" else CHANGED

    def looks_worse(self) -> bool:
        return self._is_worse(self.patched, [self.stock])

    def alone(self) -> tuple[int, int]:
        """How many of its runs alone were worse than the worst of stock's, and how many were not."""
        worse = sum(self._is_worse(each, self.stock_alone) for each in self.patched_alone)
        return worse, len(self.patched_alone) - worse

    def _is_worse(self, outcome: Outcome, stock: list[Outcome]) -> bool:
        if self.stock.outcome == "missing":
            # A test that stock does not have; it is the other one's own, and has to pass there.
            return not passes(outcome)
        return SEVERITY[outcome.outcome] > max((SEVERITY[each.outcome] for each in stock), default=0)


@dataclass
class Comparison:
    """One suite, stock against patched."""

    suite: Suite
    #: the side that is compared with stock
    variant: str = "patched"
    stock: Run | None = None
    patched: Run | None = None
    differences: list[Difference] = field(default_factory=list)
    #: expected signs of fastio that a patched run did not show
    faults: list[str] = field(default_factory=list)
    #: why the suite was not run
    unavailable: str = ""
    #: whether the other side brings its tests, so that one less is up to a reviewer
    own_tests: bool = False

    def verdict(self, difference: Difference) -> str:
        """One of :data:`VERDICTS`."""
        return CHANGED if self.own_tests and difference.patched.outcome == "missing" else difference.verdict

    def found(self, verdict: str) -> list[Difference]:
        return [each for each in self.differences if self.verdict(each) == verdict]

    def failures(self) -> list[str]:
        """Why this comparison does not pass, a line each; empty where it does."""
        worse = [f"{each.test}: {each.stock.outcome} -> {each.patched.outcome}" for each in self.found(WORSE)]
        return [f"{self.variant}: {self.suite.name}: {line}" for line in worse + self.faults]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        stock, run = (
            each and {**dataclasses.asdict(each), "counts": each.counts()} for each in (self.stock, self.patched)
        )
        return {
            "name": self.suite.name,
            "variant": self.variant,
            "unavailable": self.unavailable,
            "stock": stock,
            "run": run,
            "differences": [{**dataclasses.asdict(each), "verdict": self.verdict(each)} for each in self.differences],
            "faults": self.faults,
            "failures": self.failures(),
        }


def differences(stock: Run, patched: Run) -> list[Difference]:
    """The tests whose outcomes differ, in stock's order; a test that only one run knows is ``missing`` in the other."""
    tests = dict.fromkeys([*stock.tests, *patched.tests])
    missing = Outcome("missing")
    pairs = [Difference(test, stock.tests.get(test, missing), patched.tests.get(test, missing)) for test in tests]
    return [each for each in pairs if each.stock.outcome != each.patched.outcome]


#: Runs a test alone, in stock or (True) on the other side, and returns what became of it.
Alone = Callable[[bool, str], Outcome]


def confirm(alone: Alone, difference: Difference) -> None:
    """Run a test alone, in stock and on the other side in turn."""
    for _ in range(RERUNS):
        difference.stock_alone.append(alone(False, difference.test))
        difference.patched_alone.append(alone(True, difference.test))
        worse, not_worse = difference.alone()
        if worse == BELIEVED or not_worse > RERUNS - BELIEVED:
            return


def faults(suite: Suite, patched: Run) -> list[str]:
    """Return the signs that a patched run did not test fastio; a line each."""
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
    found += [
        f"patch {name} took no call: the patched run tested the stock code"
        for name in suite.taken
        if not patched.taken[name]
    ]
    passing = sum(outcome.outcome == "pass" for outcome in patched.tests.values())
    if passing < suite.at_least:
        found.append(f"{passing} tests pass when patched, at least {suite.at_least} must")
    return found
