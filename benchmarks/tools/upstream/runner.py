"""Runs a suite in worker processes.

A hanging or crashing test costs its worker, and a new one goes on with the rest.
"""

import contextlib
import json
import os
import secrets
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from .sources import linked
from .suites import Suite
from .worker import ENDS

WORKER = Path(__file__).with_name("worker.py")

#: Seconds between looks at a worker's events.
LOOK = 0.05

#: Seconds that a worker may take until it has loaded all tests of its suite.
LOAD_LIMIT = 300.0

#: Seconds after a test's limit at which a worker that has not ended itself is killed.
GRACE = 10.0

#: Workers in a row that may end without having run any test, before the suite is taken for one that cannot be run.
BARREN = 2

#: Characters of an event. The longest one names all tests of a suite.
LONGEST_EVENT = 16 << 20

#: The first line that faulthandler writes when a test's time is up.
_TIMED_OUT = "Timeout ("


class SuiteError(Exception):
    """A worker ended without running any test, or wrote what is no event; the message holds the end of its log."""


@dataclass
class Outcome:
    """The outcome of one test: pass, fail, error, skip, xfail, xpass, hang, crash or missing."""

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
    #: calls that the suite's patches took in all workers, up to the last test that ended
    taken: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    #: imports of a run without tests
    files: list[str] = field(default_factory=list)

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


@dataclass
class Runner:
    """Runs suites with one interpreter and one limit per test."""

    #: of :func:`benchmarks.tools.upstream.environment.create`
    python: Path
    #: seconds that a test may take
    limit: float
    #: only tests with this in their id are run
    match: str = ""
    launcher: Launcher = field(default_factory=Launcher)

    def run(
        self,
        suite: Suite,
        patched: bool,
        only: Collection[str] | None = None,
        known: Mapping[str, Outcome] | None = None,
        progress: Progress = lambda done, total: None,
        slack: float = 1,
    ) -> Run:
        """Run ``suite``, or ``only`` these ids of it.

        :param known: outcomes of tests that are not run
        :param slack: how many times its usual limit a test may take
        :raises Unavailable: if something that the suite needs is missing
        :raises SuiteError: if it cannot be run to its end
        """
        directory = suite.find()
        run = Run(patched, dict(known or {}))
        started = time.monotonic()
        barren = 0
        job = {
            "pytest": suite.arguments(), "modules": () if suite.pytest else suite.modules,
            "prelude": suite.prelude, "path": [str(directory)] if directory else [],
            "patched": patched, "constants": suite.constants, "taken": suite.taken, "limit": self.limit * slack,
            "load_limit": LOAD_LIMIT, "match": self.match, "only": None if only is None else list(only),
        }  # fmt: skip
        while True:
            before = len(run.tests)
            with tempfile.TemporaryDirectory(prefix="upstream-", ignore_cleanup_errors=True) as scratch:
                finished, log = self._work(Path(scratch), suite, directory, job, run, progress)
            if finished:
                break
            barren = barren + 1 if len(run.tests) == before else 0
            if barren == BARREN:
                raise SuiteError(f"{suite.name} ({'patched' if patched else 'stock'}): {log}")
        for test in only or ():
            run.tests.setdefault(test, Outcome("missing"))
        run.seconds = time.monotonic() - started
        return run

    def _work(
        self, scratch: Path, suite: Suite, directory: Path | None, job: dict[str, Any], run: Run, progress: Progress
    ) -> tuple[bool, str]:  # fmt: skip
        """Have one worker go on with a run; returns whether it came to its end, and the end of its log."""
        cwd, temporary, events, trace = (scratch / name for name in ("cwd", "tmp", "events", "trace"))
        for own in (cwd, temporary):
            own.mkdir()
        for own in (events, trace):
            own.touch()
        if directory and suite.pytest:
            # pytest collects what is there, and a test's id may have its file's path: it is to be the same in each run.
            place = directory
        else:
            # Tests write where they run: those of glance a log, for one. In a sandbox, all other places are read-only.
            place = linked(cwd, {each.name: each for each in directory.iterdir()} if directory else {})
        # Where there is a proxy tests would ask it for the servers that they start on this machine, or make up.
        env = {name: value for name, value in clean_environment().items() if not name.lower().endswith("_proxy")}
        word = secrets.token_hex(16)
        with open(scratch / "log", "wb") as log:
            process = self.launcher.start(
                [str(self.python), str(WORKER)], place, {**env, "TMPDIR": str(temporary), **suite.env},
                readable=[directory] if directory else [], writable=[cwd, temporary, events, trace],
                stdin=subprocess.PIPE, stdout=log, stderr=log,
            )  # fmt: skip
        job = {**job, "done": list(run.tests), "events": str(events), "trace": str(trace), "word": word}
        try:
            assert process.stdin is not None
            # One that has ended before it has read says why in its log.
            with contextlib.suppress(OSError), process.stdin:
                process.stdin.write(json.dumps(job).encode())
            with open(events, encoding="utf-8", errors="replace") as file:
                finished = self._follow(process, _Events(file, word, run), job["limit"], trace, progress)
        finally:
            # Also what the tests left running in the worker's session.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return finished, _tail(scratch / "log", 3000) + _tail(trace, 3000)

    def _follow(
        self, process: subprocess.Popen[bytes], events: "_Events", limit: float, trace: Path, progress: Progress
    ) -> bool:
        """Take a worker's events; returns whether it came to its end.

        :raises SuiteError: if what it writes is no sequence of events
        """
        tests = events.run.tests
        since = time.monotonic()
        while True:
            ended = process.poll() is not None
            while events.read():
                since = time.monotonic()
                progress(len(tests), events.total)
            if ended:
                break
            quiet = time.monotonic() - since
            if quiet > (LOAD_LIMIT if events.chosen is None else limit) + GRACE:
                process.kill()
            time.sleep(LOOK)
        if events.running:
            text = _tail(trace, 12_000)
            quiet = time.monotonic() - since
            word = "hang" if quiet > limit + GRACE or _TIMED_OUT in text else "crash"
            tests[events.running] = Outcome(word, quiet, f"exit status {process.returncode}\n{text}")
            progress(len(tests), events.total)
        events.run.taken.update(events.taken)
        return events.finished


def _tail(path: Path, characters: int) -> str:
    """The end of a file, whatever its size."""
    with open(path, "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 4 * characters))
        return file.read(4 * characters).decode(errors="replace")[-characters:]


class _Events:
    """The output of a worker: the tests that it has chosen, then the start and the end of each, then its own end.

    All of it may have been written by the code that is tested, so it is checked, and each test has one end only.
    """

    def __init__(self, file: TextIO, word: str, run: Run) -> None:
        """
        :param word: that each line begins with
        :param run: that the outcomes are added to
        """
        self._file = file
        self._word = word + " "
        self.run = run
        self.total = len(run.tests)
        #: those that have not ended; None until they are known
        self.chosen: set[str] | None = None
        self.running = ""
        self.finished = False
        self.taken: dict[str, int] = {}

    def read(self) -> bool:
        """Take the next event, if its line is complete; returns whether there was one.

        :raises SuiteError: if it is none, or not due
        """
        position = self._file.tell()
        line = self._file.readline(LONGEST_EVENT)
        if len(line) == LONGEST_EVENT:
            raise SuiteError(f"a worker wrote an event of more than {LONGEST_EVENT} characters")
        if not line.endswith("\n"):
            self._file.seek(position)
            return False
        text = line.removeprefix(self._word)
        try:
            due = text != line and not self.finished and self._take(json.loads(text))
        except (ValueError, RecursionError):
            due = False
        if not due:
            raise SuiteError(f"a worker wrote what is no event: {text[:200]!r}")
        return True

    def _take(self, event: Any) -> bool:
        """Take an event; returns whether it was due."""
        left = self.chosen or set()
        match event:
            case ["loaded", [*names]] if self.chosen is None and all(map(_is_name, names)):
                self.chosen = set(names)
                self.total += len(self.chosen)
            case ["start", test] if not self.running and _is_name(test) and test in left:
                self.running = test
            case ["end", test, outcome, float(seconds), str(detail), dict() as taken] if (
                _is_name(test)
                and test in left
                and self.running in ("", test)
                and outcome in ENDS
                and all(isinstance(calls, int) for calls in taken.values())
            ):
                left.discard(test)
                self.running = ""
                self.run.tests[test] = Outcome(outcome, seconds, detail)
                self.taken = taken
            case ["finish", dict() | None as status, [*files]] if self.chosen is not None and not left:
                self.run.status, self.run.files, self.finished = status, [*map(str, files)], True
            case _:
                return False
        return True


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and name.isprintable()


def clean_environment() -> dict[str, str]:
    """The environment without what steers Python: suites expect no PYTHONWARNINGS, and their own path.

    ``FASTIO_…`` settings stay, so that the suites can be run with others than the defaults.
    """
    kept = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
    return {name: value for name, value in os.environ.items() if name in kept or not name.startswith("PYTHON")}
