"""Run upstream's own suites patched, run in stock the tests that do not pass, and print those that are worse.

    python -m benchmarks.tools.upstream [--suite NAME] [--limit SECONDS] [--jobs N]

Exit status: 0 if nothing is worse than stock and fastio really ran, 1 otherwise, 2 if nothing could be run.
"""

import argparse
import dataclasses
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from benchmarks.backends.glance_environments import ENVIRONMENTS
from benchmarks.harness.values import count
from benchmarks.tools.pythons import Unavailable
from fastio import terminal
from fastio.arguments import Parser

from . import environment, report
from .compare import Comparison
from .runner import Runner
from .sides import Side, Sides
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
        comparisons = compared(suites, Path(scratch), options.limit, options.match, options.jobs, screen)
    for line in report.lines(comparisons):
        screen.say(line)
    screen.say("stock runs only the tests that do not pass when patched; the others count as passed there")
    if all(comparison.unavailable for comparison in comparisons):
        return 2
    return 1 if any(comparison.failures() for comparison in comparisons) else 0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of how suites are run."""
    parser.add_argument("--match", default="", metavar="TEXT", help="only tests with TEXT in their id")
    parser.add_argument("--limit", type=_seconds, default=LIMIT, metavar="SECONDS", help="per test (%(default)g)")
    parser.add_argument("--jobs", type=count(1), default=1, metavar="N", help="suites side by side (%(default)s)")


def _seconds(text: str) -> float:
    value = float(text)
    if not value >= 1:
        raise argparse.ArgumentTypeError(f"{text}: at least a second")
    return value


def compared(
    suites: Sequence[Suite], scratch: Path, limit: float, match: str, jobs: int, screen: Screen
) -> list[Comparison]:
    """Run the suites, those that bear it side by side, and then run again alone what looks worse.

    :param scratch: where the environments are made that they run in
    """

    def missing(suite: Suite) -> str:
        try:
            suite.find()
        except Unavailable as error:
            return str(error)
        runner(suite)
        return ""

    def runner(suite: Suite) -> Runner:
        return Runner(python(suite.environment), limit, match)

    @cache
    def python(name: str) -> Path:
        return environment.create(
            scratch / (name or "current"), ENVIRONMENTS[name].python() if name else sys.executable
        )

    named = {suite.name: suite for suite in suites}
    stock, patched = (
        Side(name, name == "patched", named.__getitem__, runner, missing) for name in ("stock", "patched")
    )
    return Sides(screen, jobs, lean=True).compare(list(named), stock, [patched])


if __name__ == "__main__":
    sys.exit(main())
