"""``fastio trace``: what became of the requests and commands in the files of a trace, and where their time went."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from fastio import page
from fastio.arguments import Parser
from fastio.terminal import Terminal
from fastio.trace.analysis import lists, live, otlp, perfetto, views
from fastio.trace.analysis.analysis import Analysis, analyse
from fastio.trace.analysis.model import TraceError

#: Problems that are printed one by one; the report has all of them.
MOST_PRINTED = 20
#: Rows of a list, unless others are asked for.
MOST_LISTED = 20


def main(arguments: Sequence[str]) -> int:
    """Run ``fastio trace`` with these arguments; returns the exit status.

    :raises TraceError: if there is nothing to analyse, something is missing, or a file cannot be written
    """
    chosen = parser().parse_args(arguments)
    if chosen.command == "follow":
        return live.run(chosen.directory, chosen.otlp, chosen.position, chosen.once)
    analysis = analyse(chosen.directory, chosen.rules)
    if chosen.command == "report":
        _report(analysis, chosen)
    else:
        _list(analysis, chosen)
    return _warn(analysis)


def _report(analysis: Analysis, chosen: argparse.Namespace) -> None:
    _export(analysis, chosen)
    if chosen.json:
        print(json.dumps(analysis.to_dict(), indent=2))
    elif chosen.markdown:
        shown = views.sections(analysis, chosen.request)
        print(page.markdown(views.title(analysis), shown, lead=views.lead(analysis)), end="")
    else:
        show(analysis, chosen.request)


def _list(analysis: Analysis, chosen: argparse.Namespace) -> None:
    found = lists.works(analysis)
    if chosen.command == "slowest":
        parts = lists.slowest(found, chosen.most)
    elif chosen.command == "failed":
        parts = lists.failures(found, chosen.most)
    elif chosen.request is not None:
        parts = [part for request in analysis.request(chosen.request) for part in lists.waterfall_of(request)]
    else:
        parts = lists.waterfall(found, chosen.most)
    if chosen.markdown:
        print(page.markdown(views.title(analysis), [page.Section(chosen.command.capitalize(), parts)]), end="")
    else:
        for part in parts:
            _show(part, Terminal(), "note")


def _export(analysis: Analysis, chosen: argparse.Namespace) -> None:
    """Write the files that are asked for: before anything is printed, as who reads that may stop."""
    requests = analysis.request(chosen.request) if chosen.request else None
    if chosen.html:
        shown = views.sections(analysis, chosen.request)
        _write(chosen.html, page.html(views.title(analysis), shown, lead=views.lead(analysis)))
    if chosen.otlp:
        _write(chosen.otlp, json.dumps(otlp.export(analysis, requests)))
    if chosen.perfetto:
        _write(chosen.perfetto, json.dumps(perfetto.export(analysis, requests)))


def parser() -> Parser:
    """Of ``fastio trace``."""
    parser = Parser(prog="fastio trace", description="Reads what `fastio run --trace` recorded.")
    commands = parser.add_subparsers(dest="command", required=True)
    report = commands.add_parser(
        "report",
        help="show where the requests spent their time, and what failed",
        description="Merges the files of all hosts and processes, corrects their clocks, and prints how the requests "
        "ended, where they spent their time, what failed, and what the processes used. The exit status is 1 if some of "
        "the data could not be read or cannot be true. The rest is analysed.",
    )
    report.add_argument("directory", nargs="+", type=Path, metavar="DIR", help="directories with trace files, or files")
    report.add_argument(
        "--request", metavar="ID", help="add the time line of this request, and export only this request"
    )
    report.add_argument("--html", type=Path, metavar="FILE", help="write the report as a self-contained page")
    report.add_argument("--otlp", type=Path, metavar="FILE", help="write the spans as OTLP/JSON, for OpenTelemetry")
    report.add_argument("--perfetto", type=Path, metavar="FILE", help="write the spans for ui.perfetto.dev or Chrome")
    report.add_argument("--rules", type=Path, metavar="FILE", help="TOML with kinds, states and categories of your own")
    style = report.add_mutually_exclusive_group()
    style.add_argument("--markdown", action="store_true", help="print the report as Markdown")
    style.add_argument("--json", action="store_true", help="print the figures as JSON, for programs")
    _add_list(commands, "slowest", "list the requests and commands that took longest")
    _add_list(commands, "failed", "list the requests and commands that failed, and why")
    waterfall = _add_list(commands, "waterfall", "show when each request and each command ran")
    waterfall.add_argument("--request", metavar="ID", help="show the spans of this request")
    follow = commands.add_parser(
        "follow",
        help="send the spans to OpenTelemetry's collector while they are recorded",
        description="Reads the files of a trace while they are written, and sends each request, with all spans within "
        "it, to a collector when it has ended. SIGTERM and SIGINT end it; another run goes on from the position. What "
        "cannot be sent now is tried again. The exit status is 1 if something could not be read, or was refused.",
    )
    follow.add_argument("directory", nargs="+", type=Path, metavar="DIR", help="directories with trace files")
    follow.add_argument(
        "--otlp",
        metavar="URL",
        help="the collector, for OTLP over HTTP; by default what OpenTelemetry's variables say, such as "
        "OTEL_EXPORTER_OTLP_ENDPOINT, else http://localhost:4318",
    )
    follow.add_argument(
        "--position",
        type=Path,
        metavar="FILE",
        help=f"remembers what was sent; by default {live.POSITION} in the first directory",
    )
    follow.add_argument("--once", action="store_true", help="send what is there, and end")
    return parser


def _add_list(commands: Any, name: str, what: str) -> argparse.ArgumentParser:
    added: argparse.ArgumentParser = commands.add_parser(
        name,
        help=what,
        description=f"Reads the same files as `fastio trace report`, to {what}. The exit status is 1 if some of the "
        "data could not be read or cannot be true.",
    )
    added.add_argument("directory", nargs="+", type=Path, metavar="DIR", help="directories with trace files, or files")
    added.add_argument(
        "--most", type=_number, default=MOST_LISTED, metavar="N", help=f"rows of the list; {MOST_LISTED} by default"
    )
    added.add_argument("--rules", type=Path, metavar="FILE", help="TOML with kinds and categories of your own")
    added.add_argument("--markdown", action="store_true", help="print the list as Markdown")
    return added


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; allowed is a whole number from 1 on")
    return int(text)


def show(analysis: Analysis, chosen: str | None = None, stream: TextIO | None = None) -> None:
    """Print the report for a terminal."""
    screen = Terminal(stream)
    for part in views.lead(analysis):
        _show(part, screen, "")
    for section in views.sections(analysis, chosen):
        for part in section.parts:
            _show(part, screen, "warning")


def _show(part: page.Part, screen: Terminal, notes: str) -> None:
    if isinstance(part, page.Table) and part.rows:
        screen.table(part)
    elif isinstance(part, page.Text):
        screen.say(part.text, part.tone)
    elif isinstance(part, page.Notes):
        for line in part.lines:
            screen.say(f"  * {line}", notes, "    ")


def _write(path: Path, text: str) -> None:
    try:
        page.write(path, text)
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from error


def _warn(analysis: Analysis) -> int:
    """Tell what is wrong with the data on standard error; returns the exit status."""
    problems = [*analysis.trace.problems, *analysis.impossible, *analysis.alignment.contradictions]
    for problem in problems[:MOST_PRINTED]:
        print(f"fastio: {problem}", file=sys.stderr)
    if len(problems) > MOST_PRINTED:
        print(f"fastio: and {len(problems) - MOST_PRINTED} more", file=sys.stderr)
    return 0 if analysis.sound else 1
