"""Carry out a plan: one process, or a master and workers. Importing this module monkey patches the process (gevent).

The master tells each worker the plan and its share, starts the users, and gathers the records when all have ended; a
single process is both. A worker ends by itself when its operations are done or its time is up. The messages are
Locust's custom ones::

    worker -> master   present     it listens to the following, which Locust's own "ready" does not mean
    master -> worker   plan        the plan, the worker's number and how many there are
    worker -> master   planned     whether it can be done, and the worker's clock
    worker -> master   records     a piece of the file of records; the next one only after
    master -> worker   received
    worker -> master   done        what the worker has done so far, if the run ends when it is steady
    master -> worker   enough      it is: no operation begins any more
    worker -> master   finished    what the worker says of itself
"""

import contextlib
import os
import platform
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

import gevent
import gevent.event
from locust import User
from locust.dispatch import UsersDispatcher
from locust.env import Environment
from locust.exception import RPCError
from locust.runners import MasterRunner, Runner, WorkerNode, WorkerRunner

from benchmarks.load import Failed, files
from benchmarks.load import plan as plans
from benchmarks.load.live import Live
from benchmarks.load.plan import Plan
from benchmarks.load.records import Record, Writer
from benchmarks.load.steady import Count, Steadiness
from benchmarks.load.users import StorageUser, Work
from fastio.terminal import Terminal

#: Bytes of the file of records that are sent at a time.
PIECE = 256 << 10
#: Seconds that an answer to a message may take, beside what the plan takes.
PATIENCE = 60.0
#: Seconds after which a worker that has become silent is given up.
LOST_SECONDS = 7.0

#: Seconds between two looks at what has been done.
LOOK = 0.5

#: What a run leaves beside the files of records.
SUMMARY = "run.json"
FORMAT = "fastio-load-run"
VERSION = 1


class LoadError(Failed):
    """A load that could not be carried out; the message says where it failed."""


class LoadTimeout(LoadError):
    """Something did not happen in time."""


class Sampler:
    """The share of a processor that this process used, second by second."""

    def __init__(self) -> None:
        #: seconds since the epoch at the end of each, and the share
        self.samples: list[tuple[float, float]] = []
        self._wall = time.perf_counter()
        self._spent = time.process_time()

    def sample(self) -> None:
        """Add a sample for the time since the last one."""
        wall, spent = time.perf_counter(), time.process_time()
        # Much less than a hundredth of a second is below what the kernel may count in.
        if wall - self._wall > 0.01:
            self.samples.append((round(time.time(), 3), round((spent - self._spent) / (wall - self._wall), 4)))
            self._wall, self._spent = wall, spent

    def go_on(self, sleep: Callable[[float], object], seconds: float = 1.0) -> None:
        """Sample for ever; for a greenlet."""
        while True:
            sleep(seconds)
            self.sample()


class Worker:
    """The side that has users."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._environment: Any = runner.environment
        self._received = gevent.event.Event()
        self._path: Path | None = None
        runner.register_message("plan", self._planned)
        runner.register_message("received", lambda **_: self._received.set())
        runner.register_message("enough", lambda **_: self._environment.work.end())
        runner.send_message("present", None)

    def _planned(self, msg: Any, **_: Any) -> None:
        answer: dict[str, Any] = {"worker": msg.data["worker"], "error": "", "arrived": time.time()}
        try:
            plan = plans.from_dict(msg.data["plan"])
            handle, name = tempfile.mkstemp(prefix="load-", suffix=".csv.gz")
            os.close(handle)
            self._path = Path(name)
            self._writer = Writer(self._path, {"worker": msg.data["worker"], "host": socket.gethostname()})
            self._done = Count()
            self._environment.work = Work(plan, msg.data["worker"], msg.data["workers"], self._record)
        except Exception as error:
            # The master has to know of every error.
            answer["error"] = f"{type(error).__name__}: {error}"
            self._forget()
        else:
            self._number = msg.data["worker"]
            gevent.spawn(self._follow)
        self._runner.send_message("planned", {**answer, "answered": time.time(), "asked": msg.data["asked"]})

    def _record(self, record: Record) -> None:
        self._writer.add(record)
        done = self._done
        self._done = Count(done.operations + 1, done.bytes + record.bytes, done.seconds + max(record.end, 0.0))

    def _tell(self) -> None:
        """Tell the master each second what was done so far; for a greenlet."""
        while True:
            gevent.sleep(LOOK)
            self._runner.send_message("done", {"worker": self._number, "done": self._done})

    def _follow(self) -> None:
        """Wait for the users' end and report."""
        self._environment.work.started.wait()
        telling = gevent.spawn(self._tell) if self._environment.work.plan.steady else None
        sampler = Sampler()
        sampling = gevent.spawn(sampler.go_on, gevent.sleep)
        begun = time.perf_counter()
        self._runner.user_greenlets.join()
        sampler.sample()
        sampling.kill()
        if telling is not None:
            telling.kill()
        self._writer.close()
        self._send_records()
        about = {
            "worker": self._number,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "python": platform.python_version(),
            "operations": self._writer.count,
            "seconds": time.perf_counter() - begun,
            "cpu": sampler.samples,
            "exceptions": [each["msg"] for each in self._runner.exceptions.values()],
        }
        self._forget()
        if isinstance(self._runner, WorkerRunner):
            # The master gets them every three seconds; these are the last ones.
            self._runner._send_stats()
        self._runner.send_message("finished", about)

    def _send_records(self) -> None:
        assert self._path is not None
        with open(self._path, "rb") as file:
            while piece := file.read(PIECE):
                self._received.clear()
                self._runner.send_message("records", {"worker": self._number, "data": piece})
                if not self._received.wait(PATIENCE):
                    return

    def _forget(self) -> None:
        if self._path is not None:
            with contextlib.suppress(FileNotFoundError):
                self._path.unlink()


class Master:
    """The side that knows what all do.

    :param directory: where the records and the summary go
    :param tell: as for :func:`run_here`
    """

    def __init__(self, runner: Runner, plan: Plan, directory: Path, tell: TextIO | None = None) -> None:
        self._runner = runner
        self._plan = plan
        self._directory = directory
        self._tell = tell
        #: is called now and then while it waits; may raise :class:`LoadError`
        self.check: Callable[[], None] = lambda: None
        #: Locust's ids of the workers, in the order in which they came
        self.present: list[str] = []
        self._planned: dict[int, dict[str, Any]] = {}
        self._finished: dict[int, dict[str, Any]] = {}
        #: what each worker has done so far, if the plan ends when it is steady
        self._done: dict[int, Count] = {}
        #: seconds after which it was
        self._steady: float | None = None
        #: since when Locust has not heard of a worker, by its id
        self._missing: dict[str, float] = {}
        runner.register_message("present", lambda msg, **_: self.present.append(msg.node_id))
        runner.register_message("planned", self._on_planned)
        runner.register_message("records", self._on_records)
        runner.register_message("finished", self._on_finished)
        runner.register_message("done", self._on_done)

    def _on_planned(self, msg: Any, **_: Any) -> None:
        data = dict(msg.data)
        # As NTP has it: both ways took the same time, or the error is half of what they took together.
        there, back = data["arrived"] - data["asked"], data["answered"] - time.time()
        data["clock_offset"] = (there + back) / 2
        data["clock_error"] = (there - back) / 2
        self._planned[data["worker"]] = data

    def _on_records(self, msg: Any, **_: Any) -> None:
        with open(self._directory / records_name(msg.data["worker"]), "ab") as file:
            file.write(msg.data["data"])
        self._runner.send_message("received", None, client_id=msg.node_id)

    def _on_finished(self, msg: Any, **_: Any) -> None:
        self._finished[msg.data["worker"]] = msg.data

    def _on_done(self, msg: Any, **_: Any) -> None:
        self._done[msg.data["worker"]] = Count(*msg.data["done"])

    def _watch(self, clients: Sequence[str]) -> None:
        """End the run when it is steady; for a greenlet."""
        steadiness = Steadiness(self._plan.steady_seconds, self._plan.steady)
        begun = time.monotonic()
        while True:
            gevent.sleep(LOOK)
            now = time.monotonic()
            done = Count(*map(sum, zip(*self._done.values(), strict=True)))
            if steadiness.reached(now, done):
                self._steady = now - begun
                for client in clients:
                    self._runner.send_message("enough", None, client_id=client)
                return

    def carry_out(self) -> None:
        """Have the workers that are present do the plan, no more of them than users; returns when all is gathered.

        :raises LoadError: if it cannot be done
        """
        clients = self.present[: self._plan.users]
        self._runner.environment.dispatcher_class = _only(frozenset(clients))
        data = self._plan.to_dict()
        for worker, client in enumerate(clients):
            message = {"plan": data, "worker": worker, "workers": len(clients), "asked": time.time()}
            self._runner.send_message("plan", message, client_id=client)
        self.wait(lambda: len(self._planned) == len(clients), PATIENCE, "the workers to know the plan")
        for worker, answer in sorted(self._planned.items()):
            if answer["error"]:
                raise LoadError(f"worker {worker}: {answer['error']}")
        started = time.time()
        self._runner.start(self._plan.users, self._plan.users, user_classes=[StorageUser])
        ends = None if not self._plan.seconds else self._plan.seconds + self._plan.patience + PATIENCE

        def all_ended() -> bool:
            return all(number in self._finished or self._is_lost(client) for number, client in enumerate(clients))

        live = Live(self._plan, self._runner.stats, self._tell)
        with live.shown(), contextlib.suppress(LoadTimeout):
            greenlets = [gevent.spawn(live.go_on, gevent.sleep)]
            if self._plan.steady:
                greenlets.append(gevent.spawn(self._watch, clients))
            try:
                # A worker that has not reported by then is recorded as lost.
                self.wait(all_ended, ends, "the users' end")
            finally:
                gevent.killall(greenlets)
        self._write(started, len(clients))
        if self._tell is None:
            Terminal(sys.stderr).table(live.summary())

    def _is_lost(self, client: str) -> bool:
        known = getattr(self._runner, "clients", None)
        if known is None:
            return False
        if client in known and known[client].state != "missing":
            self._missing.pop(client, None)
            return False
        # Locust says so after three seconds; a machine that is busy with the load may take longer to answer.
        return time.monotonic() - self._missing.setdefault(client, time.monotonic()) > LOST_SECONDS

    def wait(self, condition: Callable[[], bool], seconds: float | None, what: str) -> None:
        """Wait for ``condition()``; raises :class:`LoadTimeout` after so many seconds, if any are given."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while not condition():
            self.check()
            if deadline is not None and time.monotonic() > deadline:
                raise LoadTimeout(f"waited {seconds:g} s for {what}")
            gevent.sleep(0.02)

    def _write(self, started: float, workers: int) -> None:
        about = []
        for number in range(workers):
            clock = {key: self._planned[number][key] for key in ("clock_offset", "clock_error")}
            about.append({"worker": number, "lost": number not in self._finished, **clock,
                          **self._finished.get(number, {})})  # fmt: skip
        summary = {
            "format": FORMAT, "version": VERSION, "plan": self._plan.to_dict(), "started": started,
            "finished": time.time(), "steady": self._steady, "workers": about,
        }  # fmt: skip
        files.write(self._directory / SUMMARY, summary)


def _only(chosen: frozenset[str]) -> type[UsersDispatcher]:
    """A dispatcher that gives users to these workers, by Locust's ids: others do not know the plan."""

    class Dispatcher(UsersDispatcher):
        def __init__(self, worker_nodes: list[WorkerNode], user_classes: list[type[User]]) -> None:
            super().__init__([node for node in worker_nodes if node.id in chosen], user_classes)

        def add_worker(self, worker_node: WorkerNode) -> None:
            """A worker that comes later has no part in this run."""

        def remove_worker(self, worker_node: WorkerNode) -> None:
            if worker_node.id in chosen:
                super().remove_worker(worker_node)

    return Dispatcher


def records_name(worker: int) -> str:
    """Of the file of records of a worker."""
    return f"worker-{worker}.csv.gz"


def run_here(plan: Plan, directory: Path, tell: TextIO | None = None) -> None:
    """Carry out a plan in this process alone.

    :param tell: is given a line a second on what was done so far, instead of the standard error, and no summary
    """
    environment = _environment()
    runner = environment.create_local_runner()
    master = Master(runner, plan, directory, tell)
    Worker(runner)
    try:
        master.carry_out()
    finally:
        runner.quit()


def run_with_workers(
    plan: Plan, directory: Path, workers: int, host: str, port: int,
    start: Callable[[int], Callable[[], None]], patience: float = PATIENCE, tell: TextIO | None = None,
) -> None:  # fmt: skip
    """Carry out a plan with workers that connect to ``host`` and ``port`` (0: any that is free).

    :param start: is called with the port when the workers may come; what it returns is called now and then, and raises
        :class:`LoadError` if they never will
    :param patience: seconds for them to come
    :param tell: as for :func:`run_here`
    """
    environment = _environment()
    try:
        runner: MasterRunner = environment.create_master_runner(host, port)
    except (RPCError, SystemExit) as error:
        raise LoadError(f"workers cannot connect to {host}:{port}: {error}") from error
    master = Master(runner, plan, directory, tell)
    master.check = start(runner.server.port)
    try:
        master.wait(lambda: len(master.present) >= workers, patience, f"{workers} workers to come")
        master.carry_out()
    finally:
        runner.quit()


def work(host: str, port: int) -> None:
    """Be a worker until the master says that it is over.

    :raises LoadError: if there is no master
    """
    environment = _environment()
    try:
        runner = environment.create_worker_runner(host, port)
    except ConnectionError as error:
        raise LoadError(f"there is no master at {host}:{port}") from error
    Worker(runner)
    runner.greenlet.join()


def _environment() -> Any:
    return Environment(user_classes=[StorageUser])
