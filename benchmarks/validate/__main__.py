"""``python -m benchmarks.validate``: the command line. ``fastio validate`` starts it in a checkout.

Exit status: 0 if nothing newly fails, 1 if something does, 2 if it can not be run as asked, 130 after an interruption.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import machine
from benchmarks.engine import ROOT, Options
from fastio.config import parse_size
from tests.upstream.terminal import Plain, Rich, terminal

from . import candidates, html, installers, markdown, measurements, pythons, tables, targets
from .candidates import ALLOWED, Candidate
from .errors import ValidateError
from .outcome import Outcome, PythonOutcome
from .pythons import Python
from .state import State, key
from .stdlib import StandardLibraryBuilder
from .suites import Runners, Suites
from .targets import Target
from .used import check_used
from .variants import Builder, Variant

#: Seconds that one of upstream's tests may take, as in :mod:`tests.upstream`.
LIMIT = 15.0


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    screen = terminal(options.plain)
    try:
        outcome = Validation(options, given, screen).run()
    except ValidateError as error:
        print(f"fastio validate: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from here", file=sys.stderr)
        return 130
    return 1 if outcome.failures() else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fastio validate",
        description="Judges a candidate change to an upstream project: its suites and the benchmarks that touch it run "
        "with the release, the candidate, and the release with fastio, each in an environment of its own.",
    )
    parser.add_argument("target", metavar="TARGET", help=f"one of {', '.join(targets.TARGETS)}")
    parser.add_argument("--candidate", default="", metavar="WHAT", help=f"{ALLOWED}; without one it is fastio alone")
    parser.add_argument("--stock", default="", metavar="VERSION", help="the release to compare with (the newest)")
    parser.add_argument("--no-fastio", action="store_true", help="leave out the release with fastio")
    parser.add_argument(
        "--python", default="", metavar="LIST", help="versions such as 3.10,3.12, or paths (this one)"
    )  # fmt: skip
    parser.add_argument("--suite", default="", metavar="LIST", help="suites of tests, all or none (all)")
    parser.add_argument(
        "--benchmarks", default="", metavar="LIST", help="SUITE, SUITE/CASE, default, all or none (default)"
    )  # fmt: skip
    parser.add_argument("--match", default="", metavar="TEXT", help="only tests with TEXT in their id")
    parser.add_argument("--limit", type=_seconds, default=LIMIT, metavar="SECONDS", help="per test (%(default)g)")
    parser.add_argument("--jobs", type=_count, default=1, metavar="N", help="suites side by side (%(default)s)")
    parser.add_argument("--rounds", type=_count, metavar="N", help="measured runs of each row (the benchmark's own)")
    parser.add_argument("--size", type=_size, metavar="SIZE", help="payload, such as 16MiB (the benchmark's own)")
    parser.add_argument("--installer", default="", choices=["", *installers.INSTALLERS], help="uv if it is there")
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "validate", metavar="DIR",
                        help="for environments and sdists (build/validate in the checkout)")  # fmt: skip
    parser.add_argument("--refresh", action="store_true", help="make the environments anew, with the newest releases")
    parser.add_argument("--results", type=Path, default=ROOT / "results", metavar="DIR",
                        help="for the reports (results in the checkout)")  # fmt: skip
    parser.add_argument("--fresh", action="store_true", help="do not go on with an interrupted validation")
    parser.add_argument("--plain", action="store_true", help="no bars, also on a terminal")
    return parser


def _seconds(text: str) -> float:
    value = float(text)
    if value < 2:
        raise argparse.ArgumentTypeError(f"{text}: at least 2 seconds")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: at least 1")
    return value


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 16MiB") from None


def _names(text: str) -> list[str]:
    return [name for name in (part.strip() for part in text.split(",")) if name]


class Validation:
    """One run of the command: what was asked for, read and checked, and how it is done."""

    def __init__(self, options: argparse.Namespace, given: list[str], screen: Plain | Rich) -> None:
        """
        :raises ValidateError: if something that was asked for is not there
        """
        self._options = options
        self._given = given
        self._screen = screen
        self._target: Target = targets.find(options.target)
        self._candidate: Candidate | None = candidates.parse(options.candidate) if options.candidate else None
        if self._candidate is not None and self._candidate.kind not in self._target.kinds:
            raise ValidateError(
                f"--candidate {options.candidate} is a {self._candidate.kind}; "
                f"for {self._target.name} allowed are: {', '.join(self._target.kinds)}"
            )
        if self._candidate is None and options.no_fastio:
            raise ValidateError("--no-fastio without --candidate leaves nothing to compare with stock")
        self._pythons: list[Python] = [pythons.find(each) for each in _names(options.python) or [""]]
        self._suites = self._target.choose_suites(_names(options.suite))
        self._cases = self._target.choose_cases(_names(options.benchmarks))
        self._installer = installers.choose(options.installer)

    def run(self) -> Outcome:
        """Do all of it, and write the reports.

        :raises ValidateError: if an environment can not be made
        """
        options = self._options
        outcome = Outcome(self._target, self._candidate, self._given, machine.describe(), _now())
        built = [(python, self._build(python)) for python in self._pythons]
        directory = options.results / f"validate-{self._name()}-{self._key(built)}"
        state = State(directory / "state", options.fresh)
        if state.resumed:
            self._screen.say(f"going on with what {directory} has; --fresh starts anew")
        with self._screen.live():
            for python, variants in built:
                outcome.pythons.append(PythonOutcome(python, variants))
                self._run_suites(outcome.pythons[-1], state)
        for each in outcome.pythons:
            self._measure(each, state)
        state.finish()
        self._write(outcome, directory)
        return outcome

    def _name(self) -> str:
        what = Path(self._candidate.text).name if self._candidate else "fastio"
        return re.sub(r"[^A-Za-z0-9.+-]+", "_", f"{self._target.name}-{what}")

    def _key(self, built: Sequence[tuple[Python, list[Variant]]]) -> str:
        options = self._options
        return key({
            "candidate": self._candidate.digest if self._candidate else "",
            "environments": [
                (python.path, python.version, [(each.name, each.environment.versions()) for each in variants])
                for python, variants in built
            ],
            "suites": self._suites, "cases": [f"{suite}/{case.name}" for suite, case in self._cases],
            "options": [options.match, options.limit, options.rounds, options.size],
        })  # fmt: skip

    def _build(self, python: Python) -> list[Variant]:
        options = self._options
        make = Builder if self._target.installed else StandardLibraryBuilder
        builder = make(self._target, options.stock, python, options.cache, self._installer, self._screen.say)
        if options.refresh:
            builder.forget()
        stock = builder.stock()
        found = [stock]
        if self._candidate is not None:
            made = builder.candidate(stock, self._candidate)
            check_used(self._target, self._candidate, made)
            found.append(made)
        if not options.no_fastio:
            found.append(builder.fastio(stock))
        return found

    def _run_suites(self, outcome: PythonOutcome, state: State) -> None:
        options = self._options
        runners = Runners(options.limit, options.match)
        suites = Suites(runners, state, f"py{outcome.python.version}", self._screen, options.jobs)
        stock, *others = outcome.variants
        outcome.suites = suites.compare(self._suites, stock, others, whole=not options.match)

    def _measure(self, outcome: PythonOutcome, state: State) -> None:
        if not self._cases:
            return
        options = Options(rounds=self._options.rounds, size=self._options.size)
        place = f"py{outcome.python.version}"
        outcome.benchmarks = measurements.run(
            self._cases, outcome.variants, self._target.modes, options, state, place
        )  # fmt: skip
        outcome.rows = measurements.rows(outcome.benchmarks)

    def _write(self, outcome: Outcome, directory: Path) -> None:
        (directory / "raw.json").write_text(json.dumps(outcome.to_dict(), indent=1, default=str) + "\n")
        plots = [path for each in outcome.pythons for path in _plots(each, directory)]
        summary, page = directory / "summary.md", directory / "report.html"
        summary.write_text(markdown.summary(outcome))
        page.write_text(html.report(outcome, plots))
        for heading, table in (
            ("Tests whose outcome differs", tables.differences(outcome)),
            ("Benchmarks", tables.benchmarks(outcome)),
            ("Suites", tables.suites(outcome)),
            ("What was compared", tables.variants(outcome)),
        ):
            if table[1]:
                self._screen.table(heading, table)
        for line in [*tables.benchmark_notes(outcome), *outcome.failures()]:
            self._screen.say(line)
        self._screen.say(f"\n{tables.title(outcome)}: {tables.headline(outcome)}\n{page}\n{summary}")


def _plots(each: PythonOutcome, directory: Path) -> list[Path]:
    """One picture for each benchmark; none where matplotlib is not installed."""
    if each.benchmarks is None:
        return []
    try:
        from benchmarks import plots
    except ImportError:
        return []
    made = plots.plot(each.benchmarks, directory, f"benchmarks-py{each.python.version}")
    return [path for path in made if path.suffix == ".png"]


def _now() -> str:
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")


if __name__ == "__main__":
    sys.exit(main())
