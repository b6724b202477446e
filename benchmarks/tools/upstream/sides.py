"""Runs suites on several sides. The first one is stock, and each other side is compared with it test by test."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from benchmarks.tools.pythons import Unavailable

from . import compare
from .compare import SLACK, Comparison, Difference
from .runner import Outcome, Run, Runner, SuiteError
from .suites import Suite
from .terminal import Screen


@dataclass(frozen=True)
class Side:
    """Stock, or what is compared with it."""

    name: str
    #: whether fastio patches the processes that run there
    patched: bool
    #: a suite as it runs there, by its name
    suite: Callable[[str], Suite]
    #: returns the runner of a suite there
    runner: Callable[[Suite], Runner]
    #: why a suite cannot be run there; empty if it can
    missing: Callable[[Suite], str]
    #: whether it brings its tests, and may have less of them than stock
    own_tests: bool = False

    def run(self, name: str, **options: Any) -> Run:
        suite = self.suite(name)
        return self.runner(suite).run(suite, self.patched, **options)


class Sides:
    """Runs suites and compares."""

    def __init__(self, screen: Screen, jobs: int, *, lean: bool = False, most: int | None = None) -> None:
        """
        :param lean: whether stock runs only the tests that do not pass on the other side, since no other can be worse
            there; they count as passed
        :param jobs: suites that run side by side, of those that bear it
        :param most: how many differences of a suite are run again alone, those that look worse first, the others as
            well; by default all of those that look worse. The rest is believed
        """
        self._screen = screen
        self._jobs = jobs
        self._lean = lean
        self._most = most
        #: set after an interruption, which only the main thread hears of
        self._stop = threading.Event()

    def compare(
        self, names: Sequence[str], stock: Side, others: Sequence[Side], whole: bool = True
    ) -> list[Comparison]:
        """Run the suites in stock and in the others, and compare: for each suite a comparison with each of the others.

        :param whole: whether all tests are run, so that the suites' own goals can be asked for
        """
        reasons = {name: stock.missing(stock.suite(name)) for name in names}
        ran = self._run_all([name for name in names if not reasons[name]], [stock, *others])
        found = []
        for name in names:
            for other in others:
                comparison = Comparison(
                    other.suite(name), other.name, unavailable=reasons[name], own_tests=other.own_tests
                )
                if not reasons[name]:
                    self._compare(comparison, stock, other, ran, whole)
                found.append(comparison)
        return found

    def _run_all(self, names: Sequence[str], sides: Sequence[Side]) -> dict[tuple[str, str], Run | str]:
        """The runs, or why there is none, by suite and side."""
        # A lean stock runs last, without the tests that have passed.
        groups = [sides[::-1]] if self._lean else [[side] for side in sides]
        jobs = [(name, group) for name in names for group in groups]
        alone = [(name, its) for name, its in jobs if its[0].suite(name).exclusive]
        found: dict[tuple[str, str], Run | str] = {}

        def run(job: tuple[str, Sequence[Side]]) -> None:
            name, its = job
            passed: dict[str, Outcome] = {}

            def progress(done: int, total: int) -> None:
                if self._stop.is_set():
                    raise KeyboardInterrupt
                self._screen.progress(f"{name} {side.name}", done, total)

            for side in its:
                try:
                    ran = found[name, side.name] = side.run(name, progress=progress, known=passed)
                    passed = {test: end for test, end in ran.tests.items() if end.outcome == "pass"}
                except (SuiteError, Unavailable) as error:
                    found[name, side.name] = str(error)

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

    def _compare(
        self, comparison: Comparison, stock: Side, other: Side, ran: dict[tuple[str, str], Run | str], whole: bool
    ) -> None:
        name = comparison.suite.name
        before, after = ran[name, stock.name], ran[name, other.name]
        for side, run in ((stock, before), (other, after)):
            if isinstance(run, str):
                comparison.faults.append(f"{side.name} cannot be run to its end: {run}")
        if isinstance(before, str) or isinstance(after, str):
            return
        comparison.stock, comparison.patched = before, after
        if (whole or before.tests) and not any(each.outcome == "pass" for each in before.tests.values()):
            comparison.faults.append("no test passes in stock, so nothing can be concluded")

        def alone(of_other: bool, test: str) -> Outcome:
            side = other if of_other else stock
            self._screen.say(f"again {side.name}: {test}")
            try:
                return side.run(name, only=[test], slack=SLACK).tests[test]
            except SuiteError as error:
                return Outcome("crash", detail=str(error))

        found = comparison.differences = compare.differences(before, after)
        for difference in self._doubted(found):
            compare.confirm(alone, difference)
        if other.patched and whole:
            comparison.faults += compare.faults(comparison.suite, after)

    def _doubted(self, found: Sequence[Difference]) -> list[Difference]:
        """The differences that are looked at again, those that look worse first."""
        worse = [each for each in found if each.looks_worse()]
        if self._most is None:
            return worse
        # A test that only the other one has needs no second look, unless it fails.
        rest = [each for each in found if not each.looks_worse() and each.stock.outcome != "missing"]
        return [*worse, *rest][: self._most]
