"""One validation: what was asked for, read and checked, done step by step, and reported."""

import argparse
import datetime
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import machine, page
from benchmarks.harness.engine import Options
from benchmarks.harness.page import Plot
from benchmarks.tools import pythons
from benchmarks.tools.pythons import Python
from benchmarks.tools.upstream.sides import Sides
from benchmarks.tools.upstream.terminal import Screen

from . import candidates, junit, measurements, measuring, projects, report, sandbox, tables
from .candidates import Candidate
from .environments import Builder, Variant
from .errors import ValidateError
from .outcome import Outcome, PythonOutcome
from .projects import Project
from .state import State, key
from .suites import MOST_CONFIRMED, Compared, Runners, check_used


class Validation:
    """One run of the command: what was asked for, read and checked, and how it is done."""

    def __init__(self, options: argparse.Namespace, given: list[str], screen: Screen) -> None:
        """
        :raises ValidateError: if something that was asked for is not there
        """
        self._options = options
        self._given = given
        self._screen = screen
        self._project: Project = projects.find(options.project, options.stock)
        self._candidate = _candidate(options)
        if self._candidate is not None and self._candidate.kind not in self._project.kinds:
            raise ValidateError(
                f"--candidate {options.candidate} is a {self._candidate.kind}; "
                f"for {self._project.name} allowed are: {', '.join(self._project.kinds)}"
            )
        if self._candidate and self._candidate.kind == "version":
            _check_runs_alike(self._project, self._candidate.text)
        if self._candidate is None and options.no_fastio:
            raise ValidateError("--no-fastio without --candidate or --git leaves nothing to compare with stock")
        self._pythons: list[Python] = [pythons.find(each) for each in _names(options.python) or [""]]
        self._suites = self._project.choose_suites(_names(options.suite))
        self._cases = self._project.choose_cases(_names(options.benchmarks))
        self._isolation = sandbox.choose(options.isolation, self._pythons)

    def run(self) -> Outcome:
        """Do all of it, and write the reports.

        :raises ValidateError: if an environment cannot be made
        """
        options = self._options
        if self._candidate is not None and self._candidate.change is not None:
            self._screen.say(f"the candidate is {self._candidate.text}")
        if self._isolation.sandbox is None:
            self._screen.say(f"there is no sandbox: {self._isolation.reason}")
        outcome = Outcome(self._project, self._candidate, self._given, machine.describe(), _now(), self._isolation)
        built = [(python, self._build(python)) for python in self._pythons]
        directory = options.results / f"validate-{self._name()}-{self._key(built, outcome.machine)}"
        state = State(directory / "state", options.fresh)
        if state.resumed:
            self._screen.say(f"going on with what {directory} has; --fresh starts anew")
        for python, variants in built:
            outcome.pythons.append(PythonOutcome(python, variants))
            self._run_suites(outcome.pythons[-1], state)
        for each in outcome.pythons:
            self._measure(each, state)
        self._write(outcome, directory)
        state.finish()
        return outcome

    def _name(self) -> str:
        what = self._candidate.name if self._candidate else "fastio"
        return re.sub(r"[^A-Za-z0-9.+-]+", "_", f"{self._project.name}-{what}")

    def _key(self, built: Sequence[tuple[Python, list[Variant]]], described: dict[str, Any]) -> str:
        options = self._options
        return key({
            "candidate": self._candidate.digest if self._candidate else "",
            "machine": [described.get(name) for name in machine.STABLE],
            "environments": [
                (python.path, python.version, [(each.name, each.environment.versions()) for each in variants])
                for python, variants in built
            ],
            "suites": self._suites, "cases": [f"{suite}/{case.name}" for suite, case in self._cases],
            "options": [options.match, options.limit, options.rounds, options.size, bool(self._isolation.sandbox)],
        })  # fmt: skip

    def _build(self, python: Python) -> list[Variant]:
        """Stock, the candidate and fastio, those of them that are asked for."""
        candidate = self._candidate
        options = self._options
        builder = Builder(self._project, options.stock, python, options.cache, self._screen.say)
        if options.refresh:
            builder.forget()
        stock = builder.stock()
        found = [stock]
        if candidate is not None:
            made = builder.candidate(stock, candidate)
            check_used(self._project, candidate, made, self._isolation.launcher(made))
            found.append(made)
        if not options.no_fastio:
            found.append(builder.fastio(stock))
        return found

    def _run_suites(self, outcome: PythonOutcome, state: State) -> None:
        options = self._options
        runners = Runners(options.limit, options.match, self._isolation)
        place = outcome.place
        sides = Sides(runners, self._screen, options.jobs, kept=state, place=place, most=MOST_CONFIRMED)
        stock, *others = outcome.variants
        found = sides.compare(self._suites, stock, others, whole=not options.match)
        outcome.suites = [Compared(comparison) for comparison in found]

    def _measure(self, outcome: PythonOutcome, state: State) -> None:
        if not self._cases:
            return
        options = Options(rounds=self._options.rounds, size=self._options.size)
        asked = (self._cases, outcome.variants, self._project.modes, options, state, outcome.place)
        if self._isolation.sandbox is None:
            outcome.benchmarks = measurements.run(*asked)
        else:
            outcome.benchmarks = measuring.run(self._isolation.launcher(*outcome.variants), *asked)
        outcome.rows = measurements.rows(outcome.benchmarks)

    def _write(self, outcome: Outcome, directory: Path) -> None:
        (directory / "raw.json").write_text(json.dumps(outcome.to_dict(), indent=1, default=str) + "\n")
        plots = [plot for each in outcome.pythons for plot in _plots(each)]
        summary, page_file = directory / "summary.md", directory / "report.html"
        page.write(summary, report.markdown(outcome))
        page.write(page_file, report.html(outcome, plots))
        page.write(directory / "junit.xml", junit.xml(outcome))
        # The judgement stands last: that is what is seen.
        for table in reversed(tables.found(outcome)):
            self._screen.table(table)
        for line in [*tables.environments(outcome), *tables.verdicts(outcome), *outcome.failures()]:
            self._screen.say(line)
        self._screen.say(f"\n{tables.title(outcome)}: {tables.headline(outcome)}\n{page_file}\n{summary}")


def _candidate(options: argparse.Namespace) -> Candidate | None:
    if options.git:
        clone, ref = options.git
        return candidates.of_ref(clone, ref, options.cache)
    return candidates.parse(options.candidate) if options.candidate else None


def _check_runs_alike(project: Project, release: str) -> None:
    if projects.find(project.name, release) != project:
        newest = projects.find(project.name)
        assert newest.older is not None
        raise ValidateError(
            f"--candidate {release}: {project.name} {release} runs otherwise than stock does, so the two cannot be "
            f"compared; give it a --stock on the same side of {project.name} {newest.older[0]}"
        )


def _plots(each: PythonOutcome) -> list[Plot]:
    """One picture for each benchmark; none where matplotlib is not installed."""
    if each.benchmarks is None:
        return []
    try:
        from benchmarks.report import pictures
    except ImportError:
        return []
    made = map(pictures.of_case, each.benchmarks.cases)
    return [plot for plot in made if plot is not None]


def _now() -> str:
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")


def _names(text: str) -> list[str]:
    return [name for name in (part.strip() for part in text.split(",")) if name]
