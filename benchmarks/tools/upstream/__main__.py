"""Run upstream's own suites stock and patched, and print what differs.

    python -m benchmarks.tools.upstream [--suite NAME] [--limit SECONDS] [--jobs N]

Exit status: 0 if nothing is worse than stock and fastio really ran, 1 otherwise, 2 if nothing could be run.
"""

import argparse
import dataclasses
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastio import terminal
from fastio.arguments import Parser

from . import report
from .compare import Comparison
from .runner import Run, Runner, Runners
from .sides import Sides
from .sources import Unavailable
from .suites import SUITES, Suite
from .terminal import Screen

#: Seconds that a test may take. The slowest that passes in stock takes 12 s on an idle machine.
LIMIT = 15.0


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m benchmarks.tools.upstream", description=__doc__.splitlines()[0])
    parser.add_argument("--suite", action="append", choices=[*SUITES, "all"], help="may be repeated (all)")
    add_options(parser)
    options = parser.parse_args(arguments)
    asked = options.suite or ["all"]
    names = list(SUITES) if "all" in asked else list(dict.fromkeys(asked))
    suites = [SUITES[name] for name in names]
    if options.match:
        # Only what was asked for can pass.
        suites = [dataclasses.replace(suite, at_least=0) for suite in suites]
    screen = Screen()
    with tempfile.TemporaryDirectory(prefix="upstream-env-") as scratch:
        runner = Runners(Path(scratch), options.limit, match=options.match)
        comparisons = run_all(runner, suites, options.jobs, screen)
    for line in report.lines(comparisons):
        screen.say(line)
    if all(comparison.unavailable for comparison in comparisons):
        return 2
    return 1 if any(comparison.failures() for comparison in comparisons) else 0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of how suites are run."""
    parser.add_argument("--match", default="", metavar="TEXT", help="only tests with TEXT in their id")
    parser.add_argument("--limit", type=_seconds, default=LIMIT, metavar="SECONDS", help="per test (%(default)g)")
    parser.add_argument("--jobs", type=count, default=1, metavar="N", help="suites side by side (%(default)s)")


def _seconds(text: str) -> float:
    value = float(text)
    # The greenlets' stacks are taken a second before the end.
    if value < 2:
        raise argparse.ArgumentTypeError(f"{text}: at least 2 seconds")
    return value


def count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: at least 1")
    return value


@dataclass(frozen=True)
class Side:
    name: str
    patched: bool


@dataclass(frozen=True)
class Runs:
    """Runs these suites, stock and patched."""

    runner: Runner
    suites: Mapping[str, Suite]

    def suite(self, name: str, side: Side) -> Suite:
        return self.suites[name]

    def missing(self, name: str, side: Side) -> str:
        try:
            self.suites[name].find()
        except Unavailable as error:
            return str(error)
        return ""

    def run(self, name: str, side: Side, **options: Any) -> Run:
        return self.runner.run(self.suites[name], side.patched, **options)


def run_all(runner: Runner, suites: Sequence[Suite], jobs: int, screen: Screen) -> list[Comparison]:
    """Run the suites, those that bear it side by side, and then run again alone what looks worse."""
    runs = Runs(runner, {suite.name: suite for suite in suites})
    return Sides(runs, screen, jobs).compare(list(runs.suites), Side("stock", False), [Side("patched", True)])


if __name__ == "__main__":
    sys.exit(main())
