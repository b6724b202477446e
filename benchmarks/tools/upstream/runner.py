"""Runs a suite in worker processes.

A hanging or crashing test costs its worker, and a new one goes on with the rest.
"""

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TextIO

from benchmarks.backends.glance_environments import ENVIRONMENTS

from . import environment
from .sources import linked
from .suites import Suite
from .worker import DUMP_SIGNAL

WORKER = Path(__file__).with_name("worker.py")

#: Seconds between looks at a worker's events.
LOOK = 0.05

#: Seconds that a worker may take until it has loaded all tests of its suite.
LOAD_LIMIT = 300.0

#: Seconds before a test's limit at which a worker is asked where every greenlet stands.
LEAD = 1.0

#: Seconds after a test's limit at which a worker that has not ended itself is killed.
GRACE = 10.0

#: Workers in a row that may end without having run any test, before the suite is taken for one that cannot be run.
BARREN = 2

#: Characters of an event. The longest one names all tests of a suite.
LONGEST_EVENT = 16 << 20

#: What a worker may say of a test.
ENDS = ("pass", "xfail", "skip", "xpass", "fail", "error")

#: What faulthandler writes first when a test's time is up.
_TIMED_OUT = "Timeout ("


class SuiteError(Exception):
    """A worker ended without running any test, or said nothing for too long; the message holds the end of its log."""


@dataclass
class Outcome:
    """What became of one test: pass, fail, error, skip, xfail, xpass, hang, crash or missing."""

    outcome: str
    seconds: float = 0.0
    #: traceback, reason of a skip, or stacks at the end of a hang
    detail: str = ""


@dataclass
class Run:
    """One suite, stock or patched."""

    patched: bool
    tests: dict[str, Outcome] = field(default_factory=dict)
    #: ``fastio.status()`` at the end, of a patched run
    status: dict[str, Any] | None = None
    #: exchanges by all workers, up to the last test that ended
    exchanges: int = 0
    #: calls that the suite's patches took, likewise, by their names
    taken: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def counts(self) -> dict[str, int]:
        return dict(Counter(test.outcome for test in self.tests.values()))


#: Called with the number of tests done and of all tests.
Progress = Callable[[int, int], None]


class Launcher:
    """Starts a worker: as any child, with all that this user may do."""

    def start(
        self, command: Sequence[str], directory: Path, env: dict[str, str], *, readable: Sequence[Path],
        writable: Sequence[Path], **options: Any,
    ) -> subprocess.Popen[bytes]:  # fmt: skip
        """Start a process that leads a session.

        :param directory: that it runs in
        :param readable: files and directories that it reads, beside the interpreter, its packages and this checkout
        :param writable: the only ones that it may have to write to
        :param options: of ``Popen``
        """
        return subprocess.Popen(command, cwd=directory, env=env, start_new_session=True, **options)

    def signal(self, process: subprocess.Popen[bytes], number: int) -> None:
        """Send the command a signal."""
        process.send_signal(number)


class Runner:
    """Runs suites with one interpreter and one limit per test."""

    def __init__(self, python: Path, limit: float, match: str = "", launcher: Launcher | None = None) -> None:
        """
        :param python: the interpreter of :func:`benchmarks.tools.upstream.environment.create`
        :param limit: seconds that a test may take
        :param match: run only tests with this in their id
        :param launcher: starts the workers
        """
        self._python = python
        self._limit = limit
        self._match = match
        self._launcher = launcher or Launcher()

    def run(
        self,
        suite: Suite,
        patched: bool,
        only: Collection[str] | None = None,
        progress: Progress = lambda done, total: None,
        slack: float = 1,
    ) -> Run:
        """Run ``suite``, or ``only`` these ids of it.

        :param slack: how many times its usual limit a test may take
        :raises Unavailable: if something that the suite needs is missing
        :raises SuiteError: if it cannot be run to its end
        """
        directory = suite.find()
        run = Run(patched)
        limit = self._limit * slack
        started = time.monotonic()
        barren = 0
        while True:
            with tempfile.TemporaryDirectory(prefix="upstream-", ignore_cleanup_errors=True) as scratch:
                worker = _Worker(Path(scratch), limit, self._launcher)
                job = {
                    "modules": suite.modules, "pytest": suite.pytest,
                    "prelude": suite.prelude, "path": [str(directory)] if directory else [], "patched": patched,
                    "constants": suite.constants, "taken": suite.taken, "limit": limit, "load_limit": LOAD_LIMIT,
                    "match": self._match, "only": None if only is None else list(only), "done": list(run.tests),
                }  # fmt: skip
                before = len(run.tests)
                finished = worker.run(self._python, job, directory, suite.env, run, progress)
                if finished:
                    break
                barren = barren + 1 if len(run.tests) == before else 0
                if barren == BARREN:
                    raise SuiteError(f"{suite.name} ({'patched' if patched else 'stock'}): {worker.log_end()}")
        for test in only or ():
            run.tests.setdefault(test, Outcome("missing"))
        run.seconds = time.monotonic() - started
        return run


class Runners(Runner):
    """One runner for each environment that the suites want, made when the first of them is run."""

    def __init__(self, directory: Path, limit: float, match: str = "") -> None:
        """
        :param directory: where the environments are made
        """
        self._directory = directory
        self._options = (limit, match)
        self._lock = threading.Lock()
        self._runners: dict[str, Runner] = {}

    def run(self, suite: Suite, *arguments: Any, **options: Any) -> Run:
        name = suite.environment
        with self._lock:
            if name not in self._runners:
                base = ENVIRONMENTS[name].python() if name else sys.executable
                python = environment.create(self._directory / (name or "current"), base)
                self._runners[name] = Runner(python, *self._options)
        return self._runners[name].run(suite, *arguments, **options)


class _Worker:
    """One worker process and its files."""

    def __init__(self, scratch: Path, limit: float, launcher: Launcher) -> None:
        self._scratch = scratch
        self._limit = limit
        self._launcher = launcher
        self._events = scratch / "events"
        self._trace = scratch / "trace"
        self._log = scratch / "log"
        self._word = secrets.token_hex(16)

    def run(
        self, python: Path, job: dict[str, Any], directory: Path | None, env: dict[str, str], run: Run,
        progress: Progress,
    ) -> bool:  # fmt: skip
        """Run the job, adding to ``run``; return whether the worker came to its end."""
        cwd, temporary = self._scratch / "cwd", self._scratch / "tmp"
        for own in (cwd, temporary):
            own.mkdir()
        for own in (self._events, self._trace):
            own.touch()
        if directory and job["pytest"]:
            # pytest collects what is there, and a test's id may have its file's path: it is to be the same in each run.
            place = directory
        else:
            # Tests write where they run: those of glance a log, for one. In a sandbox, all other places are read-only.
            place = linked(cwd, {each.name: each for each in directory.iterdir()} if directory else {})
        with open(self._log, "wb") as log:
            process = self._launcher.start(
                [str(python), str(WORKER)], place,
                {**_without_proxies(clean_environment()), "TMPDIR": str(temporary), **env},
                readable=[directory] if directory else [],
                writable=[cwd, temporary, self._events, self._trace],
                stdin=subprocess.PIPE, stdout=log, stderr=log,
            )  # fmt: skip
        told = {**job, "events": str(self._events), "trace": str(self._trace), "word": self._word}
        try:
            assert process.stdin is not None
            # One that has ended before it has read says why in its log.
            with contextlib.suppress(OSError), process.stdin:
                process.stdin.write(json.dumps(told).encode())
            return self._follow(process, run, progress)
        finally:
            # Also what the tests left running in the worker's session.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _follow(self, process: subprocess.Popen[bytes], run: Run, progress: Progress) -> bool:
        """Add what the worker does to ``run``; returns whether it came to its end.

        :raises SuiteError: if what it writes is no sequence of events
        """
        events = _Events(self._word, len(run.tests))
        dumped = killed = False
        with open(self._events, encoding="utf-8", errors="replace") as file:
            while True:
                ended = process.poll() is not None
                while events.read(file, run):
                    dumped = False
                    progress(len(run.tests), events.total)
                if ended:
                    break
                quiet = time.monotonic() - events.since
                if not dumped and events.running and quiet > self._limit - LEAD:
                    dumped = True
                    self._launcher.signal(process, DUMP_SIGNAL)
                if not killed and quiet > (LOAD_LIMIT if events.chosen is None else self._limit) + GRACE:
                    killed = True
                    process.kill()
                time.sleep(LOOK)
        run.exchanges += events.exchanges
        for name, calls in events.taken.items():
            run.taken[name] = run.taken.get(name, 0) + calls
        if events.running:
            trace = _tail(self._trace, 12_000)
            hung = killed or _TIMED_OUT in trace
            detail = f"exit status {process.returncode}\n{trace}"
            seconds = time.monotonic() - events.since
            run.tests[events.running] = Outcome("hang" if hung else "crash", seconds, detail)
            progress(len(run.tests), events.total)
        return events.finished

    def log_end(self) -> str:
        return _tail(self._log, 3000) + _tail(self._trace, 3000)


def _tail(path: Path, characters: int) -> str:
    """The end of a file, whatever its size."""
    with open(path, "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 4 * characters))
        return file.read(4 * characters).decode(errors="replace")[-characters:]


class _Events:
    """What a worker writes: the tests that it has chosen, then the start and the end of each, then its own end.

    All of it may have been written by the code that is tested, so it is checked, and it is no more than the tests need.
    """

    #: event -> its fields, and of which type each is
    FIELDS: ClassVar[dict[str, dict[str, Any]]] = {
        "loaded": {"chosen": list},
        "start": {"id": str},
        "end": {"id": str, "outcome": str, "seconds": (int, float), "detail": str, "exchanges": int, "taken": dict},
        "finish": {"status": (dict, type(None))},
    }

    def __init__(self, word: str, done: int) -> None:
        """
        :param word: that each line begins with
        :param done: tests that other workers have run
        """
        self._word = word + " "
        self._left = 1
        self.total = done
        #: those that have not ended; None until they are known
        self.chosen: set[str] | None = None
        self.running = ""
        self.finished = False
        #: when the last event came
        self.since = time.monotonic()
        self.exchanges = 0
        self.taken: dict[str, int] = {}

    def read(self, file: TextIO, run: Run) -> bool:
        """Take the next event, if its line is complete; returns whether there was one.

        :raises SuiteError: if it is none
        """
        position = file.tell()
        line = file.readline(LONGEST_EVENT)
        if len(line) == LONGEST_EVENT:
            raise SuiteError(f"a worker wrote an event of more than {LONGEST_EVENT} characters")
        if not line.endswith("\n"):
            file.seek(position)
            return False
        self._left -= 1
        try:
            if self._left < 0 or self.finished or not line.startswith(self._word):
                raise ValueError("not by the worker" if self._left >= 0 else "more than its tests need")
            event = json.loads(line.removeprefix(self._word))
            fields = self.FIELDS[event["event"]]
            if not all(isinstance(event[name], kind) for name, kind in fields.items()):
                raise TypeError(f"not {fields}")
            getattr(self, f"_{event['event']}")(event, run)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            shown = line.removeprefix(self._word)[:200]
            raise SuiteError(f"a worker wrote what is no event: {type(error).__name__}: {error}: {shown!r}") from None
        self.since = time.monotonic()
        return True

    def _loaded(self, event: dict[str, Any], run: Run) -> None:
        names = event["chosen"]
        if not all(isinstance(name, str) and name.isprintable() for name in names):
            raise ValueError("a test's name is no line of text")
        self.chosen = set(names)
        self.total += len(names)
        # Fixtures of modules and classes end as well.
        self._left = 4 * len(names) + 1000

    def _start(self, event: dict[str, Any], run: Run) -> None:
        if self.running or event["id"] not in (self.chosen or ()):
            raise ValueError("this test was not to start")
        self.running = event["id"]

    def _end(self, event: dict[str, Any], run: Run) -> None:
        test = event["id"]
        if self.chosen is None or event["outcome"] not in ENDS or not test.isprintable():
            raise ValueError("no end of a test")
        if test in run.tests and test not in self.chosen and not test.endswith(")"):
            raise ValueError("this test has ended before")
        if not all(isinstance(calls, int) for calls in event["taken"].values()):
            raise TypeError("no numbers of calls")
        self.running = "" if self.running == test else self.running
        self.chosen.discard(test)
        run.tests[test] = Outcome(event["outcome"], event["seconds"], event["detail"])
        self.exchanges = max(self.exchanges, event["exchanges"])
        self.taken = {name: max(calls, self.taken.get(name, 0)) for name, calls in event["taken"].items()}

    def _finish(self, event: dict[str, Any], run: Run) -> None:
        if self.running or self.chosen is None or self.chosen:
            raise ValueError("not all tests have ended")
        run.status, self.finished = event["status"], True


def clean_environment() -> dict[str, str]:
    """The environment without what steers Python: suites expect no PYTHONWARNINGS, and a path of their own.

    ``FASTIO_…`` settings stay, so that the suites can be run with others than the defaults.
    """
    kept = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
    return {name: value for name, value in os.environ.items() if name in kept or not name.startswith("PYTHON")}


def _without_proxies(env: dict[str, str]) -> dict[str, str]:
    """Where there is a proxy tests would ask it for the servers that they start on this machine, or make up."""
    return {name: value for name, value in env.items() if not name.lower().endswith("_proxy")}
