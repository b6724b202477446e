"""A pytest plugin: every test has a time limit, which ends the whole run and names the test.

A test that hangs cannot be made to fail: an exception that a signal raises would arrive inside eventlet's hub, and a
process that holds the GIL or is stopped runs no handler. So :mod:`benchmarks.tools.watchdog.process` watches from
outside. It is told which test begins and how long it may take. When the time is up, faulthandler's thread, which needs
no GIL, writes the stacks to it. It prints them with the name of the test. Then it ends pytest and every process that
the run has started.

The limit is that of one test with the fixtures that are made for it, and of the import of one file of tests. The marker
``limit(seconds)`` gives a test another one. The variable ``TEST_LIMIT`` replaces
:data:`benchmarks.tools.watchdog.LIMIT`, and the markers' limits change in proportion; with ``TEST_LIMIT=0`` nothing is
limited.
"""

import contextlib
import faulthandler
import math
import os
import posix  # the functions of os may have been replaced by green ones
import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.tools.watchdog import END, LIMIT, RUN_VARIABLE, VARIABLE, begin

_ROOT = Path(__file__).resolve().parents[3]
#: Not imported here: it watches from outside.
_PROCESS = "benchmarks.tools.watchdog.process"


class Watchdog:
    """The process that watches this one, and the limit that runs now.

    :param stderr: descriptor that the process prints to
    """

    def __init__(self, stderr: int) -> None:
        self._pid = os.getpid()
        self._name = ""
        self._deadline = 0.0
        # Every process of the run inherits it, even one that leaves its parent or its session.
        run = f"{os.environ.get(RUN_VARIABLE, '')}:{secrets.token_hex(8)}"
        os.environ[RUN_VARIABLE] = run
        told, self._tell = os.pipe()
        dumped, self._dump = os.pipe()
        try:
            self._start([str(self._pid), run, str(told), str(dumped)], stderr, (told, dumped))
        finally:
            os.close(told)
            os.close(dumped)

    @staticmethod
    def _start(arguments: list[str], stderr: int, inherited: tuple[int, ...]) -> None:
        code = f"import sys; sys.path.insert(0, {str(_ROOT)!r}); from {_PROCESS} import main; main()"
        for fd in inherited:
            os.set_inheritable(fd, True)
        null = os.open(os.devnull, os.O_RDWR)
        streams = [(posix.POSIX_SPAWN_DUP2, source, target) for source, target in ((null, 0), (null, 1), (stderr, 2))]
        try:
            # No Popen: eventlet may have replaced it, and tests look at what it has left.
            pid = posix.posix_spawn(
                sys.executable, [sys.executable, "-I", "-S", "-c", code, *arguments], os.environ, file_actions=streams
            )
        finally:
            os.close(null)
        # It has forked: no test shall find a child that is not its own.
        _, status = posix.waitpid(pid, 0)
        if status:
            raise RuntimeError(f"the process that watches the tests did not start (status {status})")

    def begin(self, name: str, seconds: float) -> None:
        """What runs now is called ``name`` and ends within ``seconds``."""
        if os.getpid() != self._pid:
            # A child that a test has forked and that has not ended where it should.
            return
        self._name = name
        self._deadline = time.monotonic() + seconds
        self._send(begin(name, seconds))
        self.rearm()

    def end(self) -> None:
        """What has begun has ended."""
        if self._name and os.getpid() == self._pid:
            self._name = ""
            faulthandler.cancel_dump_traceback_later()
            self._send(END)

    def rearm(self) -> None:
        """A test that uses faulthandler takes its only timer from us."""
        left = self._deadline - time.monotonic()
        # Once it is over the stacks are on their way.
        if self._name and left > 0 and os.getpid() == self._pid:
            faulthandler.dump_traceback_later(left, file=self._dump)

    @contextlib.contextmanager
    def limit(self, name: str, seconds: float) -> Iterator[None]:
        """What runs within is called ``name`` and ends within ``seconds``."""
        self.begin(name, seconds)
        try:
            yield
        finally:
            self.end()

    def _send(self, message: bytes) -> None:
        try:
            posix.write(self._tell, message)
        except BrokenPipeError:
            pytest.exit("the process that watches the tests has been ended", returncode=pytest.ExitCode.INTERNAL_ERROR)


def scale() -> float:
    """By what ``TEST_LIMIT`` changes all limits; 0 for no limits."""
    text = os.environ.get(VARIABLE)
    if not text:
        return 1.0
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise pytest.UsageError(f"{VARIABLE}={text!r} is not a number of seconds, such as {LIMIT:g}; 0 is no limit")
    return seconds / LIMIT


def seconds_of(item: pytest.Item) -> float:
    """The limit of a test, before it is scaled."""
    marker = item.get_closest_marker("limit")
    if marker is None:
        return LIMIT
    if len(marker.args) != 1 or marker.kwargs or not isinstance(marker.args[0], (int, float)) or marker.args[0] <= 0:
        raise pytest.UsageError(f"{item.nodeid}: the marker is limit(seconds), with a positive number")
    return float(marker.args[0])


class Limits:
    """The hooks: whatever pytest runs is watched."""

    def __init__(self, watchdog: Watchdog, scale: float) -> None:
        self._watchdog = watchdog
        self._scale = scale
        self._seconds: dict[str, float] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self._seconds = {item.nodeid: seconds_of(item) * self._scale for item in items}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        with self._watchdog.limit(item.nodeid, self._seconds[item.nodeid]):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        with self._watchdog.limit(f"{collector.nodeid or 'the tests'}, being collected", LIMIT * self._scale):
            return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_exception_interact(self) -> None:
        # pytest itself has just taken the timer away.
        self._watchdog.rearm()

    @pytest.hookimpl
    def pytest_enter_pdb(self) -> None:
        self._watchdog.end()

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        # Threads that still run hold up Python at its end.
        self._watchdog.begin("pytest, after its tests", LIMIT * self._scale)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"limit(seconds): how long the test may take, with its fixtures, instead of {LIMIT:g} s"
    )
    scaled = scale()
    if not scaled:
        return
    # The tests' output is captured, but the report on a run that is stuck must be visible.
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        stderr = os.dup(2)
    try:
        watchdog = Watchdog(stderr)
    finally:
        os.close(stderr)
    config.pluginmanager.register(Limits(watchdog, scaled), "fastio time limits")
