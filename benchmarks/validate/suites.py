"""Upstream's suites, and our own of conformance, in each variant's environment, compared with stock test by test."""

from __future__ import annotations

import dataclasses
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness.worker import CACHE_VARIABLE, cache_directory
from benchmarks.tools.upstream import compare
from benchmarks.tools.upstream.compare import Comparison, Difference
from benchmarks.tools.upstream.runner import Outcome, Run, Runner, SuiteError
from benchmarks.tools.upstream.sources import Unavailable, data_of, linked
from benchmarks.tools.upstream.suites import CPYTHON, SUITES, Suite, tests_of
from benchmarks.tools.upstream.terminal import Plain, Rich

from .state import State
from .variants import CANDIDATE, Variant

#: Differences of one suite that are run again alone; where there are more, the rest is believed.
MOST_CONFIRMED = 6

_CONFORMANCE = Path(__file__).with_name("conformance")
_PROCESSES = ("conformance_processes", "conformance_execute")

#: What upstream's suites miss, see the modules in ``conformance/``.
CONFORMANCE = {
    suite.name: suite
    for suite in (
        Suite("conformance-native", _PROCESSES),
        Suite("conformance-green", (*_PROCESSES, "conformance_hub"), prelude="monkey_patch"),
        Suite("conformance-stores-native", ("conformance_stores",), exchanges=False),
        Suite("conformance-stores-green", ("conformance_stores",), prelude="monkey_patch", exchanges=False),
        Suite("conformance-glance", ("conformance_glance",), exchanges=False),
    )
}

#: Verdicts of :class:`benchmarks.tools.upstream.compare.Difference`, as the reports word them.
WORDS = {
    "worse": "newly fails",
    "newly passing": "newly passes",
    "changed": "changed",
    "not reproduced": "flaky",
}


@dataclass
class Compared:
    """One suite in one variant, against stock."""

    variant: str
    name: str
    comparison: Comparison

    def verdict(self, difference: Difference) -> str:
        """How a difference is called, one of :data:`WORDS`."""
        if self.variant == CANDIDATE and difference.patched.outcome == "missing":
            # A candidate brings tests of its own. One that can not be loaded is an error; one less is up to a reviewer.
            return WORDS["changed"]
        return WORDS[difference.verdict]

    def found(self, verdict: str) -> list[Difference]:
        return [each for each in self.comparison.differences if self.verdict(each) == verdict]

    def failures(self) -> list[str]:
        """Why this does not pass, a line each."""
        worse = [f"{each.test}: {each.stock.outcome} -> {each.patched.outcome}" for each in self.found(WORDS["worse"])]
        return [f"{self.variant}: {self.name}: {line}" for line in worse + self.comparison.faults]


def suite_for(name: str, variant: Variant) -> Suite:
    """A suite as it is run in a variant's environment."""
    found = {**SUITES, **CONFORMANCE}[name]
    project = "conformance" if name in CONFORMANCE else name.partition("-")[0]
    stores = project == "glance_store"
    modules = tests_of(variant.environment.site_packages / project) if stores else found.modules
    # What the conformance tests make for their servers is made once.
    env = {**found.env, CACHE_VARIABLE: str(cache_directory())}
    return dataclasses.replace(found, modules=modules, env=env, find=lambda: _place(project, variant), environment="")


def _place(project: str, variant: Variant) -> Path | None:
    """The directory that a project's suites run in, and import from before all else; None for a fresh one."""
    if project == "conformance":
        return _CONFORMANCE
    if project in ("glance", "glance_store"):
        data = data_of(variant.environment.site_packages / project)
        return linked(variant.environment.directory / "upstream", data)
    return variant.tests if project == "eventlet" else None


def missing(name: str, variant: Variant) -> str:
    """Why a suite can not be run in a variant's environment; empty if it can."""
    suite = {**SUITES, **CONFORMANCE}[name]
    if suite.modules != CPYTHON:
        return ""
    code = f"import importlib.util as u; [u.find_spec(name).origin for name in {CPYTHON!r}]"
    done = subprocess.run([str(variant.environment.python), "-c", code], capture_output=True, timeout=60)
    return f"this Python has no {' and no '.join(CPYTHON)}" if done.returncode else ""


class Sides:
    """Two variants as :func:`benchmarks.tools.upstream.compare.confirm` runs them.

    Stock, and in the place of patched another.
    """

    def __init__(self, runners: Runners, name: str, stock: Variant, other: Variant) -> None:
        self._runners = runners
        self._name = name
        self._sides = {False: stock, True: other}

    def run(self, suite: Suite, patched: bool, only: Sequence[str], slack: float) -> Run:
        return self._runners.run(self._name, self._sides[patched], only=only, slack=slack)


class Runners:
    """Runs suites in variants' environments."""

    def __init__(self, limit: float, match: str) -> None:
        """
        :param limit: seconds that a test may take
        :param match: run only tests with this in their id
        """
        self._limit = limit
        self._match = match

    def run(self, name: str, variant: Variant, **options: Any) -> Run:
        runner = Runner(variant.environment.python, self._limit, match=self._match)
        return runner.run(suite_for(name, variant), variant.patched, **options)


class Suites:
    """Runs the suites of one Python."""

    def __init__(self, runners: Runners, state: State, place: str, screen: Plain | Rich, jobs: int) -> None:
        """
        :param place: prefix of the names under which results are kept
        :param jobs: suites that run side by side, of those that bear it
        """
        self._runners = runners
        self._state = state
        self._place = place
        self._screen = screen
        self._jobs = jobs
        #: set after an interruption, which only the main thread hears of
        self._stop = threading.Event()

    def compare(self, names: Sequence[str], stock: Variant, others: Sequence[Variant], whole: bool) -> list[Compared]:
        """Run the suites in stock and in the others, and compare.

        :param whole: whether all tests are run, so that the suites' own goals can be asked for
        """
        reasons = {name: missing(name, stock) for name in names}
        able = [name for name in names if not reasons[name]]
        runs = self._run_all(able, [stock, *others])
        found = []
        for name in names:
            for other in others:
                if reasons[name]:
                    comparison = Comparison(suite_for(name, other), unavailable=reasons[name])
                else:
                    comparison = self._compare(name, stock, other, runs, whole)
                found.append(Compared(other.name, name, comparison))
        return found

    def _run_all(self, names: Sequence[str], variants: Sequence[Variant]) -> dict[tuple[str, str], Run | str]:
        jobs = [(name, variant) for name in names for variant in variants]
        alone = [job for job in jobs if suite_for(*job).exclusive]
        found: dict[tuple[str, str], Run | str] = {}

        def run(job: tuple[str, Variant]) -> None:
            found[job[0], job[1].name] = self._kept(*job)

        with ThreadPoolExecutor(self._jobs) as pool:
            try:
                list(pool.map(run, [job for job in jobs if job not in alone]))
            except BaseException:
                self._stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        for job in alone:
            run(job)
        return found

    def _kept(self, name: str, variant: Variant) -> Run | str:
        """The run, which may have been made before; or why there is none."""
        key = f"{self._place}/{name}-{variant.name}"
        kept = self._state.load(key)
        if kept is None:
            label = f"{self._place} {name} {variant.name}"

            def progress(done: int, total: int) -> None:
                if self._stop.is_set():
                    raise KeyboardInterrupt
                self._screen.progress(label, done, total)

            try:
                run = self._runners.run(name, variant, progress=progress)
            except (SuiteError, Unavailable) as error:
                kept = {"failed": str(error)}
            else:
                kept = dataclasses.asdict(run)
            self._state.save(key, kept)
        return kept["failed"] if "failed" in kept else run_of(kept)

    def _compare(
        self, name: str, stock: Variant, other: Variant, runs: dict[tuple[str, str], Run | str], whole: bool
    ) -> Comparison:
        before, after = runs[name, stock.name], runs[name, other.name]
        comparison = Comparison(suite_for(name, other))
        for variant, run in ((stock, before), (other, after)):
            if isinstance(run, str):
                comparison.faults.append(f"{variant.name} can not be run to its end: {run}")
        if isinstance(before, str) or isinstance(after, str):
            return comparison
        comparison.stock, comparison.patched = before, after
        if (whole or before.tests) and not any(each.outcome == "pass" for each in before.tests.values()):
            comparison.faults.append("no test passes in stock, so nothing can be told")
        sides = Sides(self._runners, name, stock, other)
        say = _labelled(self._screen.say, other.name)
        comparison.differences = self._confirmed(sides, comparison, f"{self._place}/{name}-{other.name}", say)
        if other.patched and whole:
            chance = compare.by_chance(sides, comparison, say)
            comparison.faults += compare.faults(comparison.suite, after, chance)
        return comparison

    def _confirmed(
        self, sides: Sides, comparison: Comparison, place: str, say: Callable[[str], None]
    ) -> list[Difference]:
        name = f"{place}-differences"
        kept = self._state.load(name)
        if kept is None:
            assert comparison.stock is not None and comparison.patched is not None
            found = compare.differences(comparison.stock, comparison.patched)
        else:
            found = [difference_of(each) for each in kept]
        for difference in _doubted(found):
            # One that was looked at before an interruption has what came of it: it may have taken minutes.
            if not difference.patched_alone:
                compare.confirm(sides, comparison.suite, difference, say)
                self._state.save(name, [dataclasses.asdict(each) for each in found])
        return found


def _doubted(found: Sequence[Difference]) -> list[Difference]:
    """The differences that are looked at again, those that look worse first."""
    # A test that only the other one has needs no second look, unless it fails.
    doubted = [each for each in found if each.looks_worse() or each.stock.outcome != "missing"]
    return sorted(doubted, key=lambda each: not each.looks_worse())[:MOST_CONFIRMED]


def _labelled(say: Callable[[str], None], name: str) -> Callable[[str], None]:
    # compare speaks of stock and patched.
    return lambda text: say(text.replace("again patched", f"again {name}"))


def run_of(data: dict[str, Any]) -> Run:
    """A run from its plain data."""
    return Run(**{**data, "tests": {test: Outcome(**each) for test, each in data["tests"].items()}})


def difference_of(data: dict[str, Any]) -> Difference:
    """A difference from its plain data."""

    def outcomes() -> Iterator[tuple[str, Any]]:
        for field, value in data.items():
            if isinstance(value, dict):
                yield field, Outcome(**value)
            elif isinstance(value, list):
                yield field, [Outcome(**each) for each in value]
            else:
                yield field, value

    return Difference(**dict(outcomes()))
