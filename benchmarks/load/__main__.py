"""Load on storage services::

    python -m benchmarks.load run plan.json --output DIRECTORY                  # one process
    python -m benchmarks.load run plan.json --output DIRECTORY --processes 4    # a master and 4 workers, here
    python -m benchmarks.load run plan.json --output DIRECTORY --bind 0.0.0.0:5557 --workers 8
    python -m benchmarks.load worker HOST:5557 --keep                           # on each of the other machines
    python -m benchmarks.load init plan.json                                    # make the container; dispose: remove it
    python -m benchmarks.load analyze DIRECTORY ... --result results/load.json --histograms run.hlog
    python -m benchmarks.load workload cosbench.xml --output DIRECTORY --watch swift=swift- --agent 10.0.0.2
    python -m benchmarks.load agent 0.0.0.0:5558                                # on each machine of the service
    python -m benchmarks.load path --to 10.0.0.2:8080 --rate 50MiB              # a slower network
    python -m benchmarks.load network --clients 8 --rate 1Gbit -- COMMAND       # several machines, on this one
    python -m benchmarks.load hosts --inventory hosts.yaml --group workers -- COMMAND   # real ones, by ssh

Each option of ``run`` can be given by the environment as well: ``FASTIO_LOAD_PROCESSES``, ``FASTIO_LOAD_BIND``,
``FASTIO_LOAD_WORKERS``, ``FASTIO_LOAD_PATIENCE``. That is how suites, which start it themselves, are distributed.
"""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TextIO

from benchmarks.load import Failed, Wrong
from benchmarks.load import plan as plans
from benchmarks.load.plan import Plan, PlanError
from fastio import terminal
from fastio.arguments import Parser
from fastio.config import parse_size

#: Where workers connect to if nothing else is said: Locust's own port.
PORT = 5557


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    chosen = _parser().parse_args(arguments)
    # As with Ctrl-C: what was started is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return chosen.command(chosen)
    except ModuleNotFoundError as error:
        print(f"{error}, which the load generator needs: pip install -e '.[bench,load]'", file=sys.stderr)
        return 2
    except (Wrong, Failed, OSError) as error:
        print(error, file=sys.stderr)
        return 1 if isinstance(error, Failed) else 2


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m benchmarks.load", description="Load on glance-api, Swift, S3 and the log server.")
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("run", help="carry out a plan, and keep every operation")
    run.set_defaults(command=_run)
    run.add_argument("plan", type=Path, help="a JSON file, see benchmarks/load/plan.py; -: the standard input")
    run.add_argument("-o", "--output", type=Path, required=True, metavar="DIRECTORY", help="a new directory")
    _option(run, "--processes", 0, _count, "N", "worker processes here, but no more than users; 0: this process alone")
    _option(run, "--workers", 0, _count, "N", "workers that will connect from elsewhere")
    _option(run, "--bind", ("127.0.0.1", 0), _address, "HOST:PORT", "where workers connect to")
    _option(run, "--patience", 60.0, float, "SECONDS", "how long to wait for the workers to come")
    run.add_argument("--tell", type=int, metavar="FD", help="a descriptor for the live figures, a line a second")
    worker = commands.add_parser("worker", help="be a worker of the run at HOST:PORT")
    worker.set_defaults(command=_work)
    worker.add_argument("master", type=_address, metavar="HOST:PORT")
    worker.add_argument("--keep", action="store_true", help="go on with the next run, until stopped")
    for name, words in {"init": "make the container of a plan", "dispose": "remove the container of a plan"}.items():
        container = commands.add_parser(name, help=words)
        container.set_defaults(command=_container, what=name)
        container.add_argument("plan", type=Path)
    analyze = commands.add_parser("analyze", help="what the records of runs say, as tables and as a result")
    analyze.set_defaults(command=_analyze)
    analyze.add_argument("directory", type=Path, nargs="+", help="the --output of a run")
    analyze.add_argument("--result", type=Path, metavar="FILE", help="write a result, for tables, plots and compare")
    analyze.add_argument("--histograms", type=Path, metavar="FILE", help="write a log of HdrHistograms, of one run")
    _workload_commands(commands)
    return parser


def _workload_commands(commands: argparse._SubParsersAction) -> None:
    workload = commands.add_parser("workload", help="carry out a workload file of COSBench, stage by stage")
    workload.set_defaults(command=_carry_out_workload)
    workload.add_argument("file", type=Path, help="XML, see benchmarks/load/cosbench.py")
    workload.add_argument("-o", "--output", type=Path, metavar="DIRECTORY", help="a new directory")
    workload.add_argument("--check", action="store_true", help="only say what it has, or what is wrong with it")
    workload.add_argument("--clean", action="store_true", help="only do its stages that clean up, after a stopped run")
    workload.add_argument("--no-verify", action="store_true", help="do not compare what is read with what it should be")
    _watching(workload, "here and at the agents")
    workload.add_argument(
        "--agent", type=_agent_address, action="append", metavar="HOST:PORT", default=_agents(workload),
        help="one that samples another machine (FASTIO_LOAD_AGENTS: several, with commas)",
    )  # fmt: skip
    workload.add_argument("--period", type=float, default=0.25, metavar="SECONDS", help="between two samples")
    workload.add_argument("--result", type=Path, metavar="FILE", help="write a result, for tables, plots and compare")
    agent = commands.add_parser("agent", help="sample this machine for runs elsewhere, until stopped")
    agent.set_defaults(command=_agent)
    agent.add_argument("bind", type=_agent_address, metavar="HOST:PORT")
    _watching(agent, "besides those that a run asks for")
    path = commands.add_parser("path", help="a network path of a given rate to a service, until stopped")
    path.set_defaults(command=_path)
    path.add_argument("--to", type=_address, required=True, metavar="HOST:PORT")
    path.add_argument("--bind", type=_address, default=("127.0.0.1", 0), metavar="HOST:PORT")
    path.add_argument("--rate", type=_size, default=0, metavar="SIZE", help="bytes a second, such as 50MiB; 0: any")
    path.add_argument("--resets", type=float, default=0.0, metavar="PART", help="of the connections, from 0 to 1")
    network = commands.add_parser("network", help="a command, and workers on other machines: network namespaces")
    network.set_defaults(command=_network)
    network.add_argument("--clients", type=_count, default=1, metavar="N", help="machines with a worker each (1)")
    network.add_argument("--rate", default="", metavar="RATE", help="of each link, such as 1Gbit; else any")
    network.add_argument("--delay", type=_count, default=0, metavar="MS", help="there and back, in milliseconds (0)")
    network.add_argument("do", nargs="+", metavar="COMMAND", help="runs on a machine of its own, the server's")
    hosts = commands.add_parser("hosts", help="a command here, and workers on hosts of an Ansible inventory, by ssh")
    hosts.set_defaults(command=_hosts)
    hosts.add_argument("--inventory", required=True, metavar="FILE", help="INI, YAML, or what else Ansible can read")
    hosts.add_argument("--group", default="workers", metavar="NAME", help="its hosts have one each (workers)")
    hosts.add_argument(
        "--servers", default="servers", metavar="NAME",
        help="its only host is this machine; the workers come to its address (servers)",
    )  # fmt: skip
    hosts.add_argument(
        "--checkout", type=Path, default=Path.cwd(), metavar="DIRECTORY",
        help="of fastio, with its .venv, on each of them (the name of this directory)",
    )  # fmt: skip
    hosts.add_argument("do", nargs="+", metavar="COMMAND", help="runs here")


def _watching(parser: argparse.ArgumentParser, where: str) -> None:
    parser.add_argument(
        "--watch", action="append", metavar="NAME=PATTERN", default=[],
        help=f"processes whose command line has the pattern are sampled {where}; may be given several times",
    )  # fmt: skip


def _agents(parser: argparse.ArgumentParser) -> list[tuple[str, int]]:
    """The agents that the environment names."""
    given = os.environ.get("FASTIO_LOAD_AGENTS", "")
    try:
        return [_agent_address(each) for each in given.split(",") if each]
    except argparse.ArgumentTypeError as error:
        parser.error(f"FASTIO_LOAD_AGENTS={given}: {error}")


def _agent_address(text: str) -> tuple[str, int]:
    from benchmarks.load import agent

    return _address(text if ":" in text else f"{text}:{agent.PORT}")


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 50MiB") from None


def _option(parser: argparse.ArgumentParser, name: str, default, kind, metavar: str, words: str) -> None:
    """An option with its variable of the environment."""
    variable = f"FASTIO_LOAD_{name.strip('-').upper()}"
    given = os.environ.get(variable)
    if given is not None:
        try:
            default = kind(given)
        except (ValueError, argparse.ArgumentTypeError) as error:
            parser.error(f"{variable}={given}: {error}")
    parser.add_argument(name, type=kind, default=default, metavar=metavar, help=f"{words} ({variable})")


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 on")
    return int(text)


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
        raise PlanError(f"--output {output}: there is something in it already; records are not overwritten")
    runner = _runner()
    if plan is None:
        plan = plans.parse("the standard input", sys.stdin.read())
    output.mkdir(parents=True, exist_ok=True)
    try:
        with contextlib.nullcontext() if chosen.tell is None else open(chosen.tell, "w") as tell:
            if chosen.processes + chosen.workers == 0:
                runner.run_here(plan, output, tell)
            else:
                _run_with_workers(plan, output, chosen, tell)
    except runner.LoadError:
        # A directory with half a run in it is none that can be analysed.
        shutil.rmtree(output, ignore_errors=True)
        raise
    return _judged(output) if plan.goals else 0


def _judged(directory: Path) -> int:
    """Show what a run was to reach; the exit status."""
    from benchmarks.load import analysis, report

    table, met = report.goals([analysis.read(directory)])
    terminal.Terminal().table(table)
    return 0 if met else 1


def _runner() -> ModuleType:
    """The runner. Locust patches this process, before anything that uses sockets is imported."""
    import locust  # noqa: F401

    from benchmarks.load import runner

    return runner


def _run_with_workers(plan: Plan, output: Path, chosen: argparse.Namespace, tell: TextIO | None) -> None:
    runner = _runner()
    children: list[subprocess.Popen[bytes]] = []
    processes = max(0, min(chosen.processes, plan.users - chosen.workers))

    def start(port: int) -> Callable[[], None]:
        host, _ = chosen.bind
        own = "127.0.0.1" if host in ("0.0.0.0", "*", "::") else host
        command = [sys.executable, "-m", "benchmarks.load", "worker", f"{own}:{port}"]
        children.extend(subprocess.Popen(command, stdin=subprocess.DEVNULL) for _ in range(processes))
        return check

    def check() -> None:
        for child in children:
            if child.poll() is not None:
                raise runner.LoadError(f"a worker process has ended with status {child.returncode}")

    try:
        workers = processes + chosen.workers
        runner.run_with_workers(plan, output, workers, *chosen.bind, start, chosen.patience, tell)
    finally:
        _end(children)


def _end(children: list[subprocess.Popen[bytes]]) -> None:
    """Wait for the workers, which the master has told that it is over, and end those that have not heard it."""
    for child in children:
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.terminate()
    for child in children:
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _work(chosen: argparse.Namespace) -> int:
    if chosen.keep:
        host, port = chosen.master
        command = [sys.executable, "-m", "benchmarks.load", "worker", f"{host}:{port}"]
        while True:
            # Each run has a process of its own; without a master one ends after some minutes, and the next one waits.
            subprocess.run(command, check=False)
            time.sleep(1)
    _runner().work(*chosen.master)
    return 0


def _container(chosen: argparse.Namespace) -> int:
    from benchmarks.load import protocols

    (protocols.make_container if chosen.what == "init" else protocols.remove_container)(plans.read(chosen.plan))
    return 0


def _carry_out_workload(chosen: argparse.Namespace) -> int:
    from benchmarks.load import cosbench, live, monitor, stages

    workload = cosbench.read(chosen.file)
    patterns = monitor.patterns(chosen.watch)
    if chosen.check:
        for stage in workload.stages:
            print(f"{stage.name}: " + ", ".join(f"{work.name} ({work.kind})" for work in stage.works))
        return 0
    if chosen.output is None:
        raise PlanError("--output DIRECTORY is needed: the records of all operations go there")
    if chosen.no_verify:
        workload = workload.unverified()
    if chosen.clean:
        workload = workload.cleaning()
    board = live.Board()
    settings = stages.Settings(
        monitor.Watched(patterns=patterns), chosen.agent, patterns, chosen.period, board.say, board.show
    )  # fmt: skip
    try:
        with board.shown():
            stages.carry_out(workload, chosen.output, settings)
    finally:
        # The part that was done before a failure is shown as well.
        if (chosen.output / stages.SUMMARY).exists():
            _show_workload(chosen.output, chosen.result)
    return 0


def _show_workload(directory: Path, result: Path | None) -> None:
    from benchmarks.load import workloads

    found = workloads.read(directory)
    shown = [workloads.table(found), *(workloads.processes(each) for each in found.works if each.kind == "normal")]
    terminal.Terminal().tables([each for each in shown if each.rows])
    if result is not None:
        workloads.result(found).write(result)


def _agent(chosen: argparse.Namespace) -> int:
    from benchmarks.load import agent, monitor

    host, port = chosen.bind
    server = agent.server(host, port, monitor.patterns(chosen.watch))
    with server:
        host, port = server.server_address[:2]
        print(f"{host!s}:{port}", flush=True)
        server.serve_forever()
    return 0


def _path(chosen: argparse.Namespace) -> int:
    from benchmarks.load import path

    path.serve(chosen.bind, chosen.to, path.Conditions(chosen.rate, chosen.resets))
    return 0


def _network(chosen: argparse.Namespace) -> int:
    from benchmarks.load import network

    return network.run(chosen.do, PORT, clients=chosen.clients, rate=chosen.rate, delay=chosen.delay)


def _hosts(chosen: argparse.Namespace) -> int:
    from benchmarks.load import hosts

    inventory = hosts.Inventory(chosen.inventory)
    (server,) = inventory.group("--servers", chosen.servers, only=1)
    return hosts.run(chosen.do, server, PORT, inventory.group("--group", chosen.group), chosen.checkout)


def _analyze(chosen: argparse.Namespace) -> int:
    from benchmarks.harness import tables
    from benchmarks.load import analysis, report
    from benchmarks.load.stages import SUMMARY

    if any((directory / SUMMARY).exists() for directory in chosen.directory):
        if len(chosen.directory) > 1:
            raise PlanError("of workloads one directory at a time can be analysed")
        if chosen.histograms is not None:
            raise PlanError("--histograms is of a run, and this is a workload: give the directory of one of its works")
        _show_workload(chosen.directory[0], chosen.result)
        return 0
    if chosen.histograms is not None and len(chosen.directory) > 1:
        raise PlanError("--histograms is of one run at a time")
    runs = [analysis.read(directory) for directory in chosen.directory]
    result = report.result(runs)
    judged, met = report.goals(runs)
    terminal.Terminal().tables([report.table(runs), *tables.tables(result), *([judged] if judged.rows else [])])
    if chosen.result is not None:
        result.write(chosen.result)
    if chosen.histograms is not None:
        from benchmarks.load import histograms

        histograms.write(runs[0], chosen.histograms)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
