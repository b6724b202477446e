"""``python -m benchmarks.validate``: the command line. ``fastio validate`` starts it in a checkout.

Exit status: 0 if nothing newly fails, 1 if something does, 2 if it cannot be run as asked, 130 after an interruption.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.engine import ROOT
from benchmarks.harness.values import count, size
from benchmarks.tools.pythons import Unavailable
from benchmarks.tools.upstream.__main__ import add_options
from benchmarks.tools.upstream.terminal import Screen
from fastio import terminal
from fastio.arguments import Parser

from . import projects, sandbox
from .candidates import ALLOWED
from .errors import ValidateError
from .outcome import Outcome
from .validation import Validation


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    try:
        outcome = validated(list(sys.argv[1:] if arguments is None else arguments))
    except (ValidateError, Unavailable) as error:
        print(f"fastio validate: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    return 1 if outcome.failures() else 0


def validated(given: list[str]) -> Outcome:
    """Return the findings of a validation with these arguments.

    :raises ValidateError: if it cannot be run as asked
    """
    return Validation(_parser().parse_args(given), given, Screen()).run()


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="fastio validate",
        description="Judges a candidate change to an upstream project: its suites and the benchmarks that touch it run "
        "with the release, the candidate, and the release with fastio, each in a separate environment.",
    )
    parser.add_argument("project", metavar="PROJECT", help=f"one of {', '.join(projects.PROJECTS)}")
    candidate = parser.add_mutually_exclusive_group()
    candidate.add_argument("--candidate", default="", metavar="WHAT", help=f"{ALLOWED}; without one it is fastio alone")
    candidate.add_argument("--git", nargs=2, metavar=("CLONE", "REF"),
                           help="instead: what a ref of this clone changes; REF or a range BASE..REF")  # fmt: skip
    parser.add_argument("--stock", default="", metavar="VERSION", help="the release to compare with (the newest)")
    parser.add_argument("--no-fastio", action="store_true", help="leave out the release with fastio")
    parser.add_argument("--python", default="", metavar="PYTHON", help="a version such as 3.12, or a path (this one)")
    parser.add_argument("--suite", default="", metavar="LIST", help="suites of tests, all or none (all)")
    parser.add_argument(
        "--benchmarks", default="", metavar="LIST", help="SUITE, SUITE/CASE, default, all or none (default)"
    )  # fmt: skip
    parser.add_argument("--rounds", type=count(1), metavar="N", help="measured runs of each row (the benchmark's own)")
    parser.add_argument("--size", type=size, metavar="SIZE", help="payload, such as 16MiB (the benchmark's own)")
    parser.add_argument("--isolation", default=sandbox.AUTO, choices=sandbox.ALLOWED,
                        help="of the compared code; auto: bubblewrap where it works (%(default)s)")  # fmt: skip
    parser.add_argument("--cache", type=_place, default=ROOT / "build" / "validate", metavar="DIR",
                        help="for environments and sdists (build/validate in the checkout)")  # fmt: skip
    parser.add_argument("--refresh", action="store_true", help="make the environments anew, with the newest releases")
    parser.add_argument("--results", type=_place, default=ROOT / "results", metavar="DIR",
                        help="for the reports (results in the checkout)")  # fmt: skip
    add_options(parser)
    return parser


def _place(text: str) -> Path:
    return Path(text).absolute()


if __name__ == "__main__":
    sys.exit(main())
