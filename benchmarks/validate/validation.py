"""One validation: what was asked for, read and checked, done step by step, and reported."""

import argparse
import datetime
import json
import re
from pathlib import Path

from benchmarks.harness import machine, page
from benchmarks.harness.engine import Options
from benchmarks.harness.page import Plot
from benchmarks.tools import pythons
from benchmarks.tools.pythons import Python
from benchmarks.tools.upstream.sides import Side, Sides
from benchmarks.tools.upstream.terminal import Screen

from . import candidates, junit, measurements, measuring, projects, report, sandbox, suites, tables
from .candidates import Candidate
from .environments import Builder, Variant
from .errors import ValidateError
from .outcome import Outcome
from .projects import Project
from .suites import MOST_CONFIRMED, check_used


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
        if self._candidate and self._candidate.kind == "version":
            _check_release(self._project, self._candidate.text)
        if self._candidate is None and options.no_fastio:
            raise ValidateError("--no-fastio without --candidate or --git leaves nothing to compare with stock")
        self._python: Python = pythons.find(options.python)
        self._suites = self._project.choose_suites(_names(options.suite))
        self._cases = self._project.choose_cases(_names(options.benchmarks))
        self._isolation = sandbox.choose(options.isolation, self._python)

    def run(self) -> Outcome:
        """Do all of it, and write the reports.

        :raises ValidateError: if an environment cannot be made
        """
        options = self._options
        if self._candidate is not None and self._candidate.change is not None:
            self._screen.say(f"the candidate is {self._candidate.text}")
        if self._isolation.sandbox is None:
            self._screen.say(f"there is no sandbox: {self._isolation.reason}")
        started = datetime.datetime.now().astimezone()
        variants = self._build()
        outcome = Outcome(
            self._project, self._candidate, self._given, machine.describe(), started.isoformat(timespec="seconds"),
            self._isolation, self._python, variants,
        )  # fmt: skip
        sides = [self._side(each, options.match) for each in variants]
        compared = Sides(self._screen, options.jobs, most=MOST_CONFIRMED)
        outcome.suites = compared.compare(self._suites, sides[0], sides[1:], not options.match)
        if self._cases:
            launcher = self._isolation.launcher(*variants)
            measured = Options(rounds=options.rounds, size=options.size)
            outcome.benchmarks = measuring.run(launcher, self._cases, variants, self._project.modes, measured)
            outcome.rows = measurements.rows(outcome.benchmarks)
        what = self._candidate.name if self._candidate else "fastio"
        name = re.sub(r"[^A-Za-z0-9.+-]+", "_", f"{self._project.name}-{what}")
        self._write(outcome, options.results / f"validate-{name}-{started:%Y%m%dT%H%M%S}")
        return outcome

    def _build(self) -> list[Variant]:
        """Stock, the candidate and fastio, those of them that are asked for."""
        candidate = self._candidate
        options = self._options
        builder = Builder(self._project, options.stock, self._python, options.cache, self._screen.say)
        if options.refresh:
            builder.forget()
        stock = builder.stock()
        found = [stock]
        if candidate is not None:
            made = builder.candidate(stock, candidate)
            check_used(self._project, candidate, made, self._side(made))
            found.append(made)
        if not options.no_fastio:
            found.append(builder.fastio(stock))
        return found

    def _side(self, variant: Variant, match: str = "") -> Side:
        return suites.side(variant, self._options.limit, match, self._isolation)

    def _write(self, outcome: Outcome, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        written = {
            "raw.json": json.dumps(outcome.to_dict(), indent=1, default=str) + "\n",
            "summary.md": report.markdown(outcome),
            "report.html": report.html(outcome, _plots(outcome)),
            "junit.xml": junit.xml(outcome),
        }
        for name, text in written.items():
            page.write(directory / name, text)
        # The judgement stands last: that is what is seen.
        for table in reversed(tables.found(outcome)):
            self._screen.table(table)
        for line in [*tables.environments(outcome), *tables.verdicts(outcome), *outcome.failures()]:
            self._screen.say(line)
        self._screen.say(f"\n{tables.title(outcome)}: {tables.headline(outcome)}")
        self._screen.say(f"{directory / 'report.html'}\n{directory / 'summary.md'}")


def _candidate(options: argparse.Namespace) -> Candidate | None:
    if options.git:
        clone, ref = options.git
        return candidates.of_ref(clone, ref, options.cache)
    return candidates.parse(options.candidate) if options.candidate else None


def _check_release(project: Project, release: str) -> None:
    if not project.installed:
        raise ValidateError(f"--candidate {release}: for {project.name} a diff and stock are allowed")
    if projects.find(project.name, release) != project:
        newest = projects.find(project.name)
        assert newest.older is not None
        raise ValidateError(
            f"--candidate {release}: {project.name} {release} runs otherwise than stock does, so the two cannot be "
            f"compared; give it a --stock on the same side of {project.name} {newest.older[0]}"
        )


def _plots(outcome: Outcome) -> list[Plot]:
    """One picture for each benchmark; none where matplotlib is not installed."""
    try:
        from benchmarks.report import pictures
    except ImportError:
        return []
    cases = outcome.benchmarks.cases if outcome.benchmarks else []
    return [plot for case in cases for plot in pictures.of_case(case)]


def _names(text: str) -> list[str]:
    return [name for name in (part.strip() for part in text.split(",")) if name]
