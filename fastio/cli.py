"""The command line: ``fastio status``, ``check``, ``run``, ``trace``, ``validate`` and ``report``."""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import fastio
from fastio import config, terminal
from fastio.errors import FastioError, UnknownPatchError
from fastio.patching import registry

if TYPE_CHECKING:
    # Each program under ``fastio run`` would wait for what other commands import.
    from argparse import ArgumentParser, Namespace

    from fastio.report import Report

#: Commands that a checkout has, because the benchmarks are not installed; all arguments of one are its own.
IN_CHECKOUTS = {
    "validate": "judge a candidate change to an upstream project",
    "report": "make one page of results of the benchmarks",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    given = list(sys.argv[1:] if argv is None else argv)
    # A program that it runs handles a closed pipe itself.
    return _main(given) if given[:1] == ["run"] else terminal.command(_main)(given)


def _main(given: list[str]) -> int:
    try:
        if given[:1] == ["run"] and _run(given[1:]):
            return 0
        # These commands parse their own arguments.
        if given[:1] == ["trace"]:
            from fastio.trace.analysis import command

            return command.main(given[1:])
        if given[:1] == ["check"]:
            from fastio import check

            return check.main(given[1:])
        if given and given[0] in IN_CHECKOUTS:
            return _run_of_checkout(given[0], given[1:])
        parser = _parser()
        arguments = parser.parse_args(given)
        return _run_parsed(parser, arguments) if arguments.command == "run" else _status(arguments)
    except FastioError as error:
        print(f"fastio: {error}", file=sys.stderr)
        return 2


def _parser() -> "ArgumentParser":
    from fastio.arguments import Parser

    parser = Parser(
        prog="fastio",
        description="Fast and fair image I/O for OpenStack services.",
    )
    parser.add_argument("--version", action="version", version=f"fastio {fastio.__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    status = commands.add_parser(
        "status",
        help="apply the patches to the libraries installed here, and show what became of each",
        description="Applies the patches in this process, with the settings of the environment, and prints what a "
        "service with the same environment would get. The exit status is 1 if something had to be left alone.",
    )
    status.add_argument("--json", action="store_true", help="print JSON, for programs")
    shown = status.add_mutually_exclusive_group()
    shown.add_argument("--all", action="store_true", help="show every target of every patch, and every setting")
    shown.add_argument("--patch", metavar="NAME", help="show what became of one patch, at each of its targets")
    status.add_argument(
        "--pid",
        type=int,
        metavar="N",
        help="instead, print what the running process N, started with the setting run_dir, has written: what is in "
        "effect in it, and what it counts",
    )
    status.add_argument(
        "--run-dir",
        metavar="PATH",
        help="the process's run_dir, if the environment does not have it; without --pid: print the sums of the counts "
        "of its processes",
    )
    commands.add_parser(
        "check",
        help="show what would be in effect for a service, with its own configuration and interpreter",
        add_help=False,
    )
    _add_run(commands)
    commands.add_parser(
        "trace",
        help="report, slowest, failed, waterfall: show where the recorded requests and commands spent their time, "
        "and what failed",
        add_help=False,
    )
    for name, what in IN_CHECKOUTS.items():
        commands.add_parser(name, help=f"{what}, in a checkout of fastio", add_help=False)
    return parser


def _run_of_checkout(name: str, arguments: list[str]) -> int:
    """Run ``benchmarks.NAME`` of the checkout that this fastio is part of."""
    from pathlib import Path

    root = Path(fastio.__file__).resolve().parent.parent
    how = "clone fastio, and install it there with pip install -e '.[bench,plot]'"
    if not (root / "benchmarks" / name / "__main__.py").is_file():
        raise FastioError(f"{name} needs a checkout of fastio, and {root} is none: {how}")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    # Before its imports, nothing is found in the current directory.
    run = f"runpy.run_module('benchmarks.{name}', None, '__main__')"
    code = f"import sys; sys.path[0] = {str(root)!r}; import runpy; {run}"
    os.execv(sys.executable, [sys.executable, "-c", code, *arguments])


def _status(arguments: "Namespace") -> int:
    import warnings

    from fastio.patching import modules

    if arguments.patch and arguments.patch not in registry.names():
        raise UnknownPatchError(arguments.patch, registry.names())
    if arguments.pid is not None:
        return _status_of(arguments)
    if arguments.run_dir is not None:
        return _sums(arguments)
    config.only_reporting = True
    fastio.patch()
    # Ignore the services' own warnings at import.
    warnings.simplefilter("ignore")
    for unfit in modules.import_all(target for patch in registry.patches() for target in patch.targets):
        print(f"fastio: {unfit}", file=sys.stderr)
    report, text = _shown(fastio.status(), arguments)
    print(report.to_json() if arguments.json else text)
    return 1 if report.problems() else 0


def _shown(report: "Report", arguments: "Namespace") -> tuple["Report", str]:
    """Return the part of the report that was asked for, and its text."""
    if arguments.patch:
        report = report.only(arguments.patch)
    return report, report.text(bool(arguments.all or arguments.patch), terminal.width())


def _status_of(arguments: "Namespace") -> int:
    """The status of another process."""
    import json
    import time

    from fastio import exporters, run_dir
    from fastio.report import Report

    found = run_dir.read(arguments.pid, arguments.run_dir)
    report, text = _shown(Report.from_dict(found["report"]), arguments)
    if arguments.json:
        print(json.dumps({**report.to_dict(), "metrics": found["metrics"], "written": found["written"]}, indent=2))
    else:
        counts = exporters.from_dict(found["metrics"]).table(arguments.patch or "")
        age = f"Written {max(0.0, time.time() - found['written']):.0f} s ago."
        print(text, counts.text(terminal.width()), age, sep="\n\n")
    return 1 if report.problems() else 0


def _sums(arguments: "Namespace") -> int:
    """The counts of all processes of a directory."""
    import json

    from fastio import exporters, run_dir

    found, skipped = run_dir.read_all(arguments.run_dir)
    sums = exporters.total(each["metrics"] for each in found)
    if arguments.json:
        print(json.dumps({**sums, "processes": len(found), "skipped": skipped}, indent=2))
    else:
        counts = exporters.from_dict(sums).table(arguments.patch or "")
        print(f"{len(found)} processes", counts.text(terminal.width()), *skipped, sep="\n")
    return 0


_OPTIONS = {"--" + each.name.replace("_", "-"): each.name for each in config.SETTINGS if each.name != "enabled"}


def _add_run(commands: Any) -> None:
    about = (
        "Runs the program in the place of this command, with every patch that applies: a script, a Python and its "
        "arguments, or a server such as uWSGI. The process keeps the program's name, signals and exit status. fastio "
        "need not be installed for the program's Python. Settings are options as well, each with a value. They take "
        "precedence over the environment and over the service's configuration files: "
        f"{', '.join(_OPTIONS)}. fastio status --all shows what is in effect."
    )
    import argparse
    import textwrap

    run = commands.add_parser(
        "run",
        usage="fastio run [option ...] [--] program [argument ...]\n"
        "       fastio run [option ...] -m module [argument ...]",
        help="run a program with the patches applied",
        # argparse breaks names at hyphens.
        description=textwrap.fill(about, 78, break_on_hyphens=False),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument("--children", action="store_true", help="also patch each Python that the program starts")
    run.add_argument("-m", dest="module", action="store_true", help="the program is a module, as with python -m")
    for option, name in _OPTIONS.items():
        run.add_argument(option, dest=name, help=argparse.SUPPRESS)
    run.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def _run(words: list[str]) -> bool:
    """Run the program of a command line with whole options; False leaves it to argparse, which takes long to import."""
    settings, flags = {}, set()
    while words and words[0].startswith("-"):
        word, *words = words
        name, given, text = word.partition("=")
        if word == "--":
            break
        if word in ("--children", "-m"):
            flags.add(word)
        elif name in _OPTIONS and (given or words and not words[0].startswith("-")):
            settings[_OPTIONS[name]] = text if given else words.pop(0)
        else:
            return False
    if words:
        from fastio import launcher

        launcher.run(words, settings, module="-m" in flags, children="--children" in flags)
    return bool(words)


def _run_parsed(parser: "ArgumentParser", arguments: "Namespace") -> int:
    program = arguments.program[1:] if arguments.program[:1] == ["--"] else arguments.program
    if not program:
        parser.error("run: no program given")
    from fastio import launcher

    settings = {name: text for name in _OPTIONS.values() if (text := getattr(arguments, name)) is not None}
    launcher.run(program, settings, module=arguments.module, children=arguments.children)
    return 0
