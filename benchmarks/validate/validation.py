"""One validation: what was asked for, read and checked, done step by step, and reported."""

import argparse
import datetime
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.harness import machine
from benchmarks.harness.engine import Case, Options
from benchmarks.harness.results import Result
from benchmarks.tools import pythons
from benchmarks.tools.pythons import Python
from benchmarks.tools.upstream.sides import Sides
from benchmarks.tools.upstream.terminal import Screen
from fastio import page
from fastio.page import Plot

from . import (
    annotations,
    candidates,
    findings,
    installers,
    junit,
    measurements,
    profiling,
    projects,
    report,
    sarif,
    search,
    series,
    tables,
)
from .bisection import Bisection
from .builder import Builder
from .candidates import Candidate
from .errors import ValidateError
from .history import History
from .isolation import choose, measuring
from .outcome import Outcome, PythonOutcome
from .projects import Project
from .search import Part
from .series import Series
from .state import State, key
from .stdlib import StandardLibraryBuilder
from .suites import MOST_CONFIRMED, Compared, Runners
from .used import check_used
from .variants import Variant


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
        self._profiled = profiling.asked(_names(options.profile), self._cases)
        self._installer = installers.choose(options.installer)
        trees = [self._candidate.path] if self._candidate and self._candidate.kind == "path" else []
        if options.finding and not options.bisect:
            raise ValidateError(f"--finding {options.finding} says what --bisect looks for, and needs --bisect")
        if options.bisect and not (self._suites or self._cases):
            raise ValidateError("--bisect with --suite none and --benchmarks none has nothing to look for")
        #: the commits of the candidate, if the first bad one is looked for
        self._series = series.of(self._candidate, options.cache) if options.bisect else None
        self._history = History(options.history) if options.history else None
        self._isolation = choose(options.isolation, self._pythons, options.cache, trees)

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
        outcome.profiled = self._profiled
        built = [(python, self._build(python, self._candidate)) for python in self._pythons]
        directory = options.results / f"validate-{self._name()}-{self._key(built)}"
        state = State(directory / "state", options.fresh)
        if state.resumed:
            self._screen.say(f"going on with what {directory} has; --fresh starts anew")
            outcome.begun = state.load("machine") or {}
        else:
            state.save("machine", outcome.machine)
        with self._screen.live():
            for python, variants in built:
                outcome.pythons.append(PythonOutcome(python, variants))
                self._run_suites(outcome.pythons[-1], state, self._suites)
        for each in outcome.pythons:
            self._measure(each, state, self._cases)
        for each in outcome.pythons:
            self._profile(each, state)
        if self._series is not None:
            outcome.bisection = self._bisect(outcome, self._series, directory / "state")
        if self._history is not None:
            outcome.changes = self._history.changes(outcome)
        self._write(outcome, directory)
        if self._history is not None:
            self._history.add(outcome)
        state.finish()
        return outcome

    def _name(self) -> str:
        what = self._candidate.name if self._candidate else "fastio"
        return re.sub(r"[^A-Za-z0-9.+-]+", "_", f"{self._project.name}-{what}")

    def _key(self, built: Sequence[tuple[Python, list[Variant]]]) -> str:
        options = self._options
        return key({
            "candidate": self._candidate.digest if self._candidate else "",
            "environments": [
                (python.path, python.version, [(each.name, each.environment.versions()) for each in variants])
                for python, variants in built
            ],
            "suites": self._suites, "cases": [f"{suite}/{case.name}" for suite, case in self._cases],
            "options": [options.match, options.limit, options.rounds, options.size, self._isolation.name],
        })  # fmt: skip

    def _bisect(self, outcome: Outcome, commits: Series, directory: Path) -> Bisection:
        """Look for the first bad commit of the candidate."""
        text = self._options.finding
        found = search.sought(outcome, text)
        if not found:
            what = f"nothing that was found has {text!r} in it" if text else "nothing newly fails"
            return Bisection(commits.commits, note=f"not looked for: {what}")
        self._screen.say(f"looking for the first bad one of {len(commits.commits)} commits")

        def judge(candidate: Candidate, parts: Mapping[str, Part]) -> Outcome:
            state = State(directory / f"first-{key({'candidate': candidate.digest, 'parts': parts})}")
            return self._judge_part(candidate, parts, state)

        return search.search(commits, found, judge, self._screen.say)

    def _judge_part(self, candidate: Candidate, parts: Mapping[str, Part], state: State) -> Outcome:
        """What is found of another candidate if only these parts are run, by the versions of Python."""
        outcome = Outcome(self._project, candidate, self._given, {}, _now(), self._isolation)
        for python in self._pythons:
            part = parts.get(python.version)
            if part is None:
                continue
            variants = self._build(python, candidate, alone=True)
            each = PythonOutcome(python, variants)
            outcome.pythons.append(each)
            self._run_suites(each, state, list(part.tests), part.tests)
            self._measure(
                each, state, [(suite, case) for suite, case in self._cases if f"{suite}/{case.name}" in part.cases]
            )
        return outcome

    def _build(self, python: Python, candidate: Candidate | None, alone: bool = False) -> list[Variant]:
        """Stock and the candidate, and fastio unless they are to be ``alone``."""
        options = self._options
        make = Builder if self._project.installed else StandardLibraryBuilder
        builder = make(self._project, options.stock, python, options.cache, self._installer, self._screen.say)
        if options.refresh and not alone:
            builder.forget()
        stock = builder.stock()
        found = [stock]
        if candidate is not None:
            made = builder.candidate(stock, candidate)
            check_used(self._project, candidate, made, self._isolation.launcher(made))
            found.append(made)
        if not (options.no_fastio or alone):
            found.append(builder.fastio(stock))
        return found

    def _run_suites(
        self, outcome: PythonOutcome, state: State, suites: Sequence[str],
        only: Mapping[str, Sequence[str] | None] | None = None,
    ) -> None:  # fmt: skip
        options = self._options
        runners = Runners(options.limit, options.match, self._isolation, only)
        place = outcome.place
        sides = Sides(runners, self._screen, options.jobs, kept=state, place=place, most=MOST_CONFIRMED)
        stock, *others = outcome.variants
        found = sides.compare(suites, stock, others, whole=not (options.match or only))
        outcome.suites = [Compared(comparison) for comparison in found]

    def _measure(self, outcome: PythonOutcome, state: State, cases: Sequence[tuple[str, Case]]) -> None:
        if not cases:
            return
        modes, options = self._project.modes, self._measured()
        outcome.benchmarks = self._benchmark(cases, outcome.variants, modes, options, state, outcome.place)
        outcome.rows = measurements.rows(outcome.benchmarks)

    def _profile(self, outcome: PythonOutcome, state: State) -> None:
        """Run what is to be profiled again."""

        def measure(case: tuple[str, Case], variants: Sequence[Variant], mode: str, options: Options) -> Result:
            place = f"{outcome.place}/profile-{case[0]}-{case[1].name}-{mode}"
            return self._benchmark([case], variants, [mode], options, state, place)

        asked = (self._profiled, outcome.rows, self._cases, outcome.variants, self._measured())
        outcome.profiles = profiling.run(*asked, measure)

    def _measured(self) -> Options:
        return Options(rounds=self._options.rounds, size=self._options.size)

    def _benchmark(
        self, cases: Sequence[tuple[str, Case]], variants: Sequence[Variant], modes: Sequence[str], options: Options,
        state: State, place: str,
    ) -> Result:  # fmt: skip
        asked = (cases, variants, modes, options, state, place)
        if self._isolation.sandbox is None:
            return measurements.run(*asked)
        return measuring.run(self._isolation.launcher(*variants), *asked)

    def _write(self, outcome: Outcome, directory: Path) -> None:
        # Those of an earlier validation of the same would pass for this one's.
        for old in directory.glob("profile-*.txt"):
            old.unlink()
        for name, text in outcome.files().items():
            page.write(directory / name, text)
        (directory / "raw.json").write_text(json.dumps(outcome.to_dict(), indent=1, default=str) + "\n")
        plots = [plot for each in outcome.pythons for plot in _plots(each)]
        summary, page_file = directory / "summary.md", directory / "report.html"
        page.write(summary, report.markdown(outcome))
        page.write(page_file, report.html(outcome, plots))
        page.write(directory / "junit.xml", junit.xml(outcome))
        page.write(directory / "verdict.sarif", sarif.log(outcome))
        # The judgement stands last: that is what is seen.
        for table in reversed(tables.found(outcome)):
            self._screen.table(table)
        if self._options.annotations:
            for line in [*annotations.github(findings.of(outcome)), *annotations.of_changes(outcome.changes)]:
                self._screen.say(line)
        for line in [
            *tables.environments(outcome),
            *tables.verdicts(outcome),
            *tables.profiled(outcome),
            *tables.compared_with_others(outcome),
            *outcome.failures(),
        ]:
            self._screen.say(line)
        self._screen.say(f"\n{tables.title(outcome)}: {tables.headline(outcome)}\n{page_file}\n{summary}")


def _candidate(options: argparse.Namespace) -> Candidate | None:
    if options.git:
        clone, ref = options.git
        return candidates.of_ref(clone, ref, options.stock, options.cache)
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
