"""Load on storage services::

    python -m benchmarks.load run plan.json --output DIRECTORY                  # one process
    python -m benchmarks.load run plan.json --output DIRECTORY --processes 4    # a master and 4 workers, here
    python -m benchmarks.load run plan.json --output DIRECTORY --bind 0.0.0.0:5557 --workers 8
    python -m benchmarks.load worker HOST:5557 --keep                           # on each of the other machines
    python -m benchmarks.load analyze DIRECTORY ... --result results/load.json
    python -m benchmarks.load workload cosbench.xml --output DIRECTORY --watch swift=swift- --agents 10.0.0.2
    python -m benchmarks.load agent 0.0.0.0:5558                                # on each machine of the service

Each option of ``run`` can be given by the environment as well: ``FASTIO_LOAD_PROCESSES``, ``FASTIO_LOAD_BIND``,
``FASTIO_LOAD_WORKERS``, ``FASTIO_LOAD_PATIENCE``. That is how suites, which start it themselves, are distributed.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.values import count
from benchmarks.load import Failed, Wrong
from benchmarks.load import plan as plans
from fastio import terminal
from fastio.arguments import Parser

#: Where workers connect to if nothing else is given: Locust's own port.
PORT = 5557
#: Set by a signal that ends the process. The exception of its handler is lost where a finalizer runs at that moment.
_ended = threading.Event()


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    chosen = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _end)
    try:
        return chosen.command(chosen)
    except ModuleNotFoundError as error:
        print(f"{error}, which the load generator needs: pip install -e '.[bench,load]'", file=sys.stderr)
        return 2
    except (Wrong, Failed, OSError) as error:
        if isinstance(error, OSError) and error.filename:
            print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        else:
            print(error, file=sys.stderr)
        if _ended.is_set():
            return 143
        return 1 if isinstance(error, Failed) else 2


def _end(*_: object) -> None:
    """As with Ctrl-C: what was started is ended."""
    _ended.set()
    sys.exit(143)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m benchmarks.load", description="Load on glance-api, Swift and the log server.")
    commands = parser.add_subparsers(required=True)

    def command(name: str, do: Callable[[argparse.Namespace], int], words: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=words)
        made.set_defaults(command=do)
        return made

    run = command("run", _run, "carry out a plan, and keep every operation")
    run.add_argument("plan", type=Path, help="a JSON file, see benchmarks/load/plan.py; -: the standard input")
    run.add_argument("-o", "--output", type=Path, required=True, metavar="DIRECTORY", help="a new directory")
    _option(run, "--processes", 0, count(0), "N", "worker processes here, no more than users; 0: this process alone")
    _option(run, "--workers", 0, count(0), "N", "workers that will connect from elsewhere")
    _option(run, "--bind", ("127.0.0.1", 0), _address, "HOST:PORT", "where workers connect to")
    _option(run, "--patience", 60.0, float, "SECONDS", "how long to wait for the workers to come")
    run.add_argument("--quiet", action="store_true", help="do not show Locust's statistics on the standard error")
    worker = command("worker", _work, "be a worker of the run at HOST:PORT")
    worker.add_argument("master", type=_address, metavar="HOST:PORT")
    worker.add_argument("--keep", action="store_true", help="go on with the next run, until stopped")
    analyze = command("analyze", _analyze, "show the records of runs as tables, or make a result of them")
    analyze.add_argument("directory", type=Path, nargs="+", help="the --output of a run or of a workload")
    workload = command("workload", _carry_out_workload, "carry out a workload file of COSBench, stage by stage")
    workload.add_argument("file", type=Path, help="XML, see benchmarks/load/cosbench.py")
    workload.add_argument("-o", "--output", type=Path, metavar="DIRECTORY", help="a new directory")
    workload.add_argument("--check", action="store_true", help="only show what it has, or what is wrong with it")
    workload.add_argument("--clean", action="store_true", help="only do its stages that clean up, after a stopped run")
    workload.add_argument("--no-verify", action="store_true", help="do not compare what is read with what it should be")
    _option(workload, "--agents", [], agents, "HOST:PORT,...", "those that sample other machines")
    for each in (analyze, workload):
        each.add_argument("--result", type=Path, metavar="FILE", help="write a result, for tables, plots and compare")
    agent = command("agent", _agent, "sample this machine for runs elsewhere, until stopped")
    agent.add_argument("bind", type=_agent_address, metavar="HOST:PORT")
    workload.add_argument(
        "--watch", action="append", metavar="NAME=PATTERN", default=[],
        help="processes whose command line has the pattern (*, ?, [ab]) are sampled, here and by agents; repeatable",
    )  # fmt: skip
    return parser


def _option(parser: argparse.ArgumentParser, name: str, default: Any, kind: Any, metavar: str, words: str) -> None:
    """An option with its variable of the environment, whose value is checked as the option's is."""
    variable = f"FASTIO_LOAD_{name.strip('-').upper()}"

    def checked(text: str) -> Any:
        try:
            return kind(text)
        except (ValueError, argparse.ArgumentTypeError) as error:
            raise argparse.ArgumentTypeError(f"{error} (it can be given by {variable})") from None

    given = os.environ.get(variable) or default
    parser.add_argument(name, type=checked, default=given, metavar=metavar, help=f"{words} ({variable})")


def agents(text: str) -> list[tuple[str, int]]:
    """The addresses of agents, with commas between them."""
    return [_agent_address(each) for each in text.split(",") if each]


def _agent_address(text: str) -> tuple[str, int]:
    from benchmarks.load import agent

    return _address(text if ":" in text else f"{text}:{agent.PORT}")


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":") if ":" in text else (text, "", str(PORT))
    if not host or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT, such as 10.0.0.1:{PORT}")
    return host.strip("[]"), int(port)


def _run(chosen: argparse.Namespace) -> int:
    # It has to be ready when it is given the plan.
    plan = plans.read(chosen.plan) if str(chosen.plan) != "-" else None
    output: Path = chosen.output
    if output.exists() and any(output.iterdir()):
        raise Wrong(f"--output {output}: there is something in it already; records are not overwritten")
    import locust  # noqa: F401 (patches this process, before anything that uses sockets is imported)

    from benchmarks.load import runner

    if plan is None:
        plan = plans.parse("the standard input", sys.stdin.read())
    output.mkdir(parents=True, exist_ok=True)
    try:
        runner.run(plan, output, chosen.processes, chosen.workers, chosen.bind, chosen.patience, chosen.quiet)
    except Failed:
        # A directory with half a run in it is none that can be analysed.
        shutil.rmtree(output, ignore_errors=True)
        raise
    return 0


def _work(chosen: argparse.Namespace) -> int:
    host, port = chosen.master
    while chosen.keep:
        # Each run has a separate process; without a master one ends after some minutes, and the next one waits.
        subprocess.run([sys.executable, "-m", "benchmarks.load", "worker", f"{host}:{port}"], check=False)
        time.sleep(1)
    import locust  # noqa: F401 (as above)

    from benchmarks.load import runner

    runner.work(host, port)
    return 0


def _carry_out_workload(chosen: argparse.Namespace) -> int:
    from benchmarks.load import cosbench, monitor, stages

    workload = cosbench.read(chosen.file)
    for notice in workload.notices:
        print(notice, file=sys.stderr)
    patterns = monitor.patterns(chosen.watch)
    if chosen.check:
        for stage in workload.stages:
            print(f"{stage.name}: " + ", ".join(f"{work.name} ({work.kind})" for work in stage.works))
        return 0
    if chosen.output is None:
        raise Wrong("--output DIRECTORY is needed: the records of all operations go there")
    if chosen.no_verify:
        workload = workload.unverified()
    if chosen.clean:
        workload = workload.cleaning()
    try:
        stages.carry_out(
            workload, chosen.output, agents=chosen.agents, patterns=patterns, stop=_ended,
            tell=lambda line: print(line, file=sys.stderr, flush=True),
        )  # fmt: skip
    finally:
        # The part that was done before a failure is shown as well.
        if (chosen.output / stages.SUMMARY).exists():
            _show([chosen.output], chosen.result)
    return 0


def _show(directories: Sequence[Path], result: Path | None) -> None:
    from benchmarks.harness import tables
    from benchmarks.load import report

    found = [report.read(directory) for directory in directories]
    made = report.result(found)
    problems = [f"{each.name}: {problem}" for each in found for problem in each.problems]
    terminal.show([*tables.tables(made), *report.judgement(made)], problems)
    if result is not None:
        made.write(result)


def _agent(chosen: argparse.Namespace) -> int:
    from benchmarks.load import agent

    with agent.Server(*chosen.bind) as server:
        host, port = server.server_address[:2]
        print(f"{host!s}:{port}", flush=True)
        server.serve_forever()
    return 0


def _analyze(chosen: argparse.Namespace) -> int:
    _show(chosen.directory, chosen.result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
