"""``python -m benchmarks.report``: the command line. ``fastio report`` starts it in a checkout.

Exit status: 0 if the report is written, 2 if not; then no file has changed.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import fastio
from benchmarks.harness import page
from benchmarks.harness.page import Text
from benchmarks.harness.results import ResultError
from benchmarks.report import sections
from fastio import terminal
from fastio.arguments import Parser


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _parser().parse_args(arguments)
    try:
        _check(chosen)
        given = sections.read(chosen.results)
        title = f"fastio: {', '.join(each.name for each in given)}"
        shown = sections.count(len(given), "result")
        lead = [Text(f"{shown} of fastio's benchmarks; made by fastio {fastio.__version__}.")]
        page.write(chosen.output, page.html(title, sections.of_all(given), lead=lead))
    except ResultError as error:
        print(f"fastio report: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"fastio report: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    print(chosen.output)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="fastio report",
        description="Makes one HTML page of results of the benchmarks, which needs no other file: tables, plots, what "
        "was asked and what was reached, the machine and the versions.",
    )
    parser.add_argument("results", metavar="RESULT", nargs="+", type=Path, help="a JSON result of any suite")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("report.html"), metavar="FILE", help="the page (%(default)s)"
    )
    return parser


def _check(chosen: argparse.Namespace) -> None:
    """Refuse what would fail after the work is done.

    :raises ResultError: with the option and what is wrong
    """
    path = chosen.output
    if path.is_dir():
        raise ResultError(f"--output {path}: that is a directory; the name of a file is needed")
    if not path.parent.is_dir():
        raise ResultError(f"--output {path}: there is no directory {path.parent}")
    if path.resolve() in [each.resolve() for each in chosen.results]:
        raise ResultError(f"--output {path}: that is a RESULT as well")


if __name__ == "__main__":
    sys.exit(main())
