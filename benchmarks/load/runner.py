"""Carry out a plan: one process, or a master and workers. Importing this module monkey patches the process (gevent).

Locust distributes it: its options bring each worker the plan and the list of those that take part, and its dispatcher
brings the users. A single process is both sides. A worker ends by itself when its operations are done or its time is
up, and then reports by Locust's custom messages::

    worker -> master   records     a piece of the file of records, every second
    worker -> master   clock       when its operations are done
    master -> worker   answer      the master's time
    worker -> master   finished    what the worker says of itself, or why it could not begin
"""

import contextlib
import json
import os
import platform
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import gevent
import gevent.event
import gevent.queue
import locust.log
import locust.stats
from locust import User, argument_parser, runners
from locust.dispatch import UsersDispatcher
from locust.env import Environment
from locust.exception import RPCError
from locust.runners import MasterRunner, Runner, WorkerNode, WorkerRunner

from benchmarks.load import Failed, files, plan, records
from benchmarks.load.plan import Plan
from benchmarks.load.users import StorageUser, Work

#: Seconds that an answer to a message may take, besides those of the plan.
PATIENCE = 60.0
#: Seconds after which a worker that has become silent is given up: a machine that is busy with the load is slow.
LOST_SECONDS = 10

#: Seconds between two tables of what was done so far.
TABLE_SECONDS = 10


class Worker:
    """The side that has users; it is made before its runner, which may be asked to begin at once."""

    def __init__(self, environment: Any) -> None:
        self._environment = environment
        environment.work = gevent.event.AsyncResult()
        self._begun = gevent.event.Event()
        environment.events.test_start.add_listener(lambda **_: self._begun.set())
        self._answers: gevent.queue.Queue[float] = gevent.queue.Queue()

    def take_part(self, runner: Runner) -> None:
        """Do this worker's share when the master begins; for a greenlet."""
        self._runner = runner
        runner.register_message("answer", lambda msg, **_: self._answers.put(msg.data))
        self._begun.wait()
        options = self._environment.parsed_options
        index: Any = runner.worker_index  # type: ignore[attr-defined]
        number = options.workers.index(index)
        about = {"worker": number, "host": socket.gethostname(), "pid": os.getpid(), "error": "",
                 "python": platform.python_version()}  # fmt: skip
        try:
            about |= self._share(number, len(options.workers), plan.parse("options", options.plan))
        except Exception as error:
            # The master has to know of every error, and no user may wait for what will not come.
            self._environment.work.set(None)
            about["error"] = f"{type(error).__name__}: {error}"
        if isinstance(runner, WorkerRunner):
            # The master gets them every three seconds; these are the last ones.
            runner._send_stats()
        runner.send_message("finished", about)

    def _share(self, number: int, workers: int, chosen: Plan) -> dict[str, Any]:
        """Do a share of a plan, and send the records; returns what there is to say of it."""
        writer = records.Writer()
        work = Work(chosen, number, workers, writer.add)
        self._environment.work.set(work)
        work.started.wait()
        cpu = self._sent_to_the_end(number, writer)
        ahead, error = files.clock_ahead(self._clock)
        exceptions = [each["msg"] for each in self._runner.exceptions.values()]
        return {"cpu": cpu, "exceptions": exceptions, "clock_offset": -ahead, "clock_error": error}

    def _sent_to_the_end(self, number: int, writer: records.Writer) -> list[tuple[float, float]]:
        """Send the records until the users' end; returns the share of a processor that was used, second by second.

        Each is the time since the epoch at its end, and the share.
        """
        samples = []
        wall, spent = time.perf_counter(), time.process_time()
        ended = False
        while not ended:
            ended = self._runner.user_greenlets.join(1.0) or not self._runner.user_greenlets
            later, used = time.perf_counter(), time.process_time()
            # Much less than a hundredth of a second is below what the kernel may count in.
            if later - wall > 0.01:
                samples.append((round(time.time(), 3), round((used - spent) / (later - wall), 4)))
                wall, spent = later, used
            self._runner.send_message("records", {"worker": number, "data": writer.piece()})
        return samples

    def _clock(self) -> float:
        """The master's time."""
        self._runner.send_message("clock")
        try:
            return self._answers.get(timeout=PATIENCE)
        except gevent.queue.Empty:
            raise Failed(f"no answer of the master in {PATIENCE:g} s") from None


class Master:
    """The side that knows what all do.

    :param directory: where the records and the summary go
    """

    def __init__(self, runner: Runner, chosen: Plan, directory: Path) -> None:
        self._runner = runner
        self._plan = chosen
        self._directory = directory
        #: final report of each worker, by number
        self._finished: dict[int, dict[str, Any]] = {}
        runner.register_message("records", self._on_records)
        runner.register_message("clock", self._on_clock)
        runner.register_message("finished", self._on_finished)

    def _on_records(self, msg: Any, **_: Any) -> None:
        with open(self._directory / records.file_name(msg.data["worker"]), "ab") as file:
            file.write(msg.data["data"])

    def _on_clock(self, msg: Any, **_: Any) -> None:
        self._runner.send_message("answer", time.time(), client_id=msg.node_id)

    def _on_finished(self, msg: Any, **_: Any) -> None:
        self._finished[msg.data["worker"]] = msg.data

    def carry_out(self, quiet: bool = False, check: Callable[[], None] = lambda: None) -> None:
        """Have the workers that are ready do the plan, no more of them than users; returns when all is gathered.

        :param quiet: show nothing meanwhile
        :param check: is called now and then; may raise :class:`Failed`
        :raises Failed: if it cannot be done
        """
        runner = self._runner
        options: Any = runner.environment.parsed_options
        if isinstance(runner, MasterRunner):
            ids = sorted((each.id for each in runner.clients.ready), key=runner.get_worker_index)[: self._plan.users]
            options.workers = [runner.get_worker_index(each) for each in ids]
            runner.environment.dispatcher_class = _only(ids)
        else:
            ids, options.workers = ["local"], [0]
        started = time.time()
        runner.start(self._plan.users, self._plan.users, user_classes=[StorageUser])
        ends = None if not self._plan.seconds else self._plan.seconds + self._plan.patience + PATIENCE

        def all_ended() -> bool:
            check()
            for number, each in sorted(self._finished.items()):
                if each["error"]:
                    raise Failed(f"worker {number}: {each['error']}")
            return all(number in self._finished or self._is_lost(each) for number, each in enumerate(ids))

        with _shown(runner.stats) if not quiet else contextlib.nullcontext():
            # A worker that has not reported by then is recorded as lost.
            wait(all_ended, ends)
        workers = [
            {"clock_offset": 0.0, "clock_error": 0.0, "worker": number, "lost": number not in self._finished,
             **self._finished.get(number, {})}
            for number in range(len(ids))
        ]  # fmt: skip
        summary = {
            "format": records.RUN_FORMAT, "version": records.RUN_VERSION, "plan": self._plan.to_dict(),
            "started": started, "finished": time.time(), "workers": workers,
        }  # fmt: skip
        files.write(self._directory / records.SUMMARY, summary)

    def _is_lost(self, client: str) -> bool:
        known = getattr(self._runner, "clients", {client: None})
        return client not in known or (known[client] is not None and known[client].state == runners.STATE_MISSING)


def wait(condition: Callable[[], bool], seconds: float | None) -> bool:
    """Wait for ``condition()``, no longer than so many seconds if any are given; returns whether it came."""
    deadline = float("inf") if seconds is None else time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        gevent.sleep(0.02)
    return True


@contextlib.contextmanager
def _shown(stats: locust.stats.RequestStats) -> Any:
    """Locust's statistics are shown on the standard error, now and then and at the end."""
    locust.log.setup_logging("WARNING")
    locust.stats.CONSOLE_STATS_INTERVAL_SEC = TABLE_SECONDS
    printing = gevent.spawn_later(TABLE_SECONDS, locust.stats.stats_printer(stats))
    try:
        yield
    finally:
        printing.kill()
    locust.stats.print_stats(stats, current=False)
    locust.stats.print_percentile_stats(stats)


def _only(chosen: Collection[str]) -> type[UsersDispatcher]:
    """A dispatcher that gives users to these workers, by Locust's ids."""

    class Dispatcher(UsersDispatcher):
        def __init__(self, worker_nodes: list[WorkerNode], user_classes: list[type[User]]) -> None:
            super().__init__([node for node in worker_nodes if node.id in chosen], user_classes)

        def add_worker(self, worker_node: WorkerNode) -> None:
            """A worker that comes later has no part in this run."""

        def remove_worker(self, worker_node: WorkerNode) -> None:
            """The work of one that is lost is not done by others."""

    return Dispatcher


def _environment(chosen: Plan | None = None) -> Any:
    """Locust's environment, with the options that all workers get."""
    parser = argument_parser.get_empty_argument_parser(default_config_files=[])
    argument_parser.setup_parser_arguments(parser)
    options = parser.parse_args([])
    options.plan, options.workers = json.dumps(chosen.to_dict()) if chosen else "", []
    return Environment(user_classes=[StorageUser], parsed_options=options)


def run(
    chosen: Plan, directory: Path, processes: int = 0, workers: int = 0, bind: tuple[str, int] = ("127.0.0.1", 0),
    patience: float = PATIENCE, quiet: bool = False,
) -> None:  # fmt: skip
    """Carry out a plan: in this process, unless there are to be other ones.

    :param processes: workers that are started here, but no more than users; 0: none
    :param workers: that connect from elsewhere
    :param bind: where workers connect to
    :param patience: seconds for them to come
    :param quiet: show nothing meanwhile
    :raises Failed: if it cannot be done
    """
    environment = _environment(chosen)
    children: list[subprocess.Popen[bytes]] = []

    def check() -> None:
        for child in children:
            if child.poll() is not None:
                raise Failed(f"a worker process has ended with status {child.returncode}")

    with contextlib.ExitStack() as stack:
        stack.callback(_end, children)
        if processes + workers:
            runner = _master(environment, *bind)
        else:
            worker = Worker(environment)
            runner = environment.create_local_runner()
            gevent.spawn(worker.take_part, runner)
        stack.callback(runner.quit)
        processes = max(0, min(processes, chosen.users - workers))
        if processes + workers:
            own = "127.0.0.1" if bind[0] in ("0.0.0.0", "*", "::") else bind[0]
            start = worker_command(own, runner.server.port)
            children += [subprocess.Popen(start, stdin=subprocess.DEVNULL) for _ in range(processes)]

            def all_ready() -> bool:
                check()
                return len(runner.clients.ready) >= processes + workers

            if not wait(all_ready, patience):
                raise Failed(f"waited {patience:g} s for {processes + workers} workers to come")
        Master(runner, chosen, directory).carry_out(quiet, check)


def _master(environment: Any, host: str, port: int) -> MasterRunner:
    runners.HEARTBEAT_LIVENESS = LOST_SECONDS
    try:
        return environment.create_master_runner(host, port)
    except (RPCError, SystemExit) as error:
        raise Failed(f"workers cannot connect to {host}:{port}: {error}") from error


def worker_command(host: str, port: int) -> list[str]:
    """The command that is a worker of the master there."""
    return [sys.executable, "-m", "benchmarks.load", "worker", f"{host}:{port}"]


def _end(children: list[subprocess.Popen[bytes]]) -> None:
    """End the processes that have not heard from the master that it is over."""
    for end in (lambda _: None, subprocess.Popen.terminate, subprocess.Popen.kill):
        left = [child for child in children if child.poll() is None]
        for child in left:
            end(child)
        for child in left:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(5)


def work(host: str, port: int) -> None:
    """Be a worker until the master says that it is over.

    :raises Failed: if there is no master
    """
    environment = _environment()
    worker = Worker(environment)
    try:
        runner = environment.create_worker_runner(host, port)
    except ConnectionError as error:
        raise Failed(f"there is no master at {host}:{port}") from error
    gevent.spawn(worker.take_part, runner)
    runner.greenlet.join()
