"""``fastio trace``: what became of the requests and commands in the files of a trace, and where their time went."""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fastio import terminal
from fastio.arguments import Parser
from fastio.tables import Table
from fastio.trace.analysis import lists, views
from fastio.trace.analysis.analysis import analyse

#: Problems that are printed one by one; the report has all of them.
MOST_PRINTED = 20
#: Rows of a list, unless others are asked for.
MOST_LISTED = 20


def main(arguments: Sequence[str]) -> int:
    """Run ``fastio trace`` with these arguments; returns the exit status.

    :raises TraceError: if there is nothing to analyse, or a library is missing
    """
    chosen = parser().parse_args(arguments)
    analysis = analyse(chosen.directory)
    if chosen.command == "waterfall":
        _show(map(lists.waterfall, analysis.request(chosen.request)))
    elif chosen.command != "report":
        make = lists.slowest if chosen.command == "slowest" else lists.failures
        _show(make(lists.works(analysis), chosen.most))
    elif chosen.json:
        print(json.dumps(analysis.to_dict(), indent=2))
    else:
        figures = analysis.to_dict()
        for line in views.lead(figures):
            terminal.say(line, "    ")
        _show(views.tables(figures))
    return _warn(analysis.problems)


def parser() -> Parser:
    """Of ``fastio trace``."""
    parser = Parser(prog="fastio trace", description="Reads what `fastio run --trace` recorded.")
    commands = parser.add_subparsers(dest="command", required=True)
    report = _add(
        commands,
        "report",
        "show where the requests spent their time, and what failed",
        "Merges the files of all hosts and processes, corrects their clocks, and prints how the requests ended, where "
        "they spent their time and what failed.",
    )
    report.add_argument("--json", action="store_true", help="print the figures as JSON, for programs")
    for name, what in (
        ("slowest", "list the requests and commands that took longest"),
        ("failed", "list the requests and commands that failed, and why"),
        ("waterfall", "show when each state and each span of a request was"),
    ):
        added = _add(commands, name, what, f"Reads the same files as `fastio trace report`, to {what}.")
        if name == "waterfall":
            added.add_argument(
                "--request", metavar="ID", required=True, help="its id, its global id, or the id of its trace"
            )
            continue
        added.add_argument(
            "--most", type=_number, default=MOST_LISTED, metavar="N", help=f"rows of the list; {MOST_LISTED} by default"
        )
    return parser


def _add(commands: Any, name: str, what: str, description: str) -> argparse.ArgumentParser:
    ending = " The exit status is 1 if some of the data could not be read or cannot be true. The rest is shown."
    added: argparse.ArgumentParser = commands.add_parser(name, help=what, description=description + ending)
    added.add_argument("directory", nargs="+", type=Path, metavar="DIR", help="directories with trace files, or files")
    return added


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; allowed is a whole number from 1 on")
    return int(text)


def _show(tables: Iterable[Table]) -> None:
    for table in tables:
        if table.rows:
            terminal.show([table])
        else:
            terminal.say(f"{table.title}.")


def _warn(problems: Sequence[str]) -> int:
    """Print what is wrong with the data on standard error; returns the exit status."""
    for problem in problems[:MOST_PRINTED]:
        print(f"fastio: {problem}", file=sys.stderr)
    if len(problems) > MOST_PRINTED:
        print(f"fastio: and {len(problems) - MOST_PRINTED} more", file=sys.stderr)
    return 1 if problems else 0
