"""Runs one suite's tests by pytest in this process, and reports each outcome as a line of JSON.

Started by path, so that neither this directory nor the project's ``tests`` package is importable: upstream has a
``tests`` package, too. Its job comes on stdin. Only the standard library is imported before the prelude, because what
is imported before ``eventlet.monkey_patch()`` is part of what the suites see. Each event begins with a word that only
the job has: what tests write to the stream is none.
"""

from __future__ import annotations

import faulthandler
import fcntl
import importlib
import importlib.util
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

#: Read by the hook in the throw-away environment: child Pythons with it patch themselves as they start.
CHILDREN_VARIABLE = "FASTIO_UPSTREAM_CHILDREN"

#: Own descriptors are kept above those that tests open, close and compare by number.
LOWEST_OWN_FD = 100

#: Outcomes that a worker may report of a test, the worst last.
ENDS = ("pass", "xfail", "skip", "xpass", "fail", "error")

# Taken before the prelude: eventlet replaces the functions of os in place.
_write = os.write
_getpid = os.getpid


def open_own(path: str) -> int:
    """Open ``path`` for appending, on a descriptor out of the tests' way."""
    low = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    high = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, LOWEST_OWN_FD)
    os.close(low)
    return high


class Events:
    """The stream of events, silent in forked children."""

    def __init__(self, path: str, word: str, patches: Iterable[str]) -> None:
        """
        :param word: that each event begins with
        :param patches: those whose calls are reported with each test
        """
        self._fd = open_own(path)
        self._word = word.encode()
        self._pid = _getpid()
        self._patches = patches

    def emit(self, *event: Any) -> None:
        """Write an event: its name and its fields."""
        if _getpid() == self._pid:
            _write(self._fd, self._word + b" " + json.dumps(event).encode() + b"\n")

    def end(self, key: str, outcome: str, detail: str, seconds: float) -> None:
        """Report what became of a test."""
        counters = sys.modules.get("fastio.counters")
        calls = {name: counters.of(name).calls for name in self._patches} if counters else {}
        self.emit("end", key, outcome, round(seconds, 3), detail[-8000:], calls)

    def end_escaped(self) -> None:
        """End a forked child that a test let escape: the tests after it are not its own."""
        if _getpid() != self._pid:
            os._exit(1)


class Watchdog:
    """Ends the process when a test takes longer than ``limit`` seconds, or loading all of them longer than ``load``.

    It must not be a signal: the handler would raise inside eventlet's hub. faulthandler's is a C thread.
    """

    def __init__(self, limit: float, load: float, path: str) -> None:
        self._limit = limit
        self._load = load
        self._fd = open_own(path)

    def arm(self, loading: bool = False) -> None:
        faulthandler.dump_traceback_later(self._load if loading else self._limit, exit=True, file=self._fd)


def printable(name: str) -> str:
    """A test's name in one line."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in name)


def key_of(item: Any) -> str:
    """A test's id, as unittest names it: the module, its class and itself, wherever its file is."""
    return printable(f"{item.module.__name__}.{item.getmodpath()}")


class Plugin:
    """Of pytest: chooses the tests, and reports what becomes of each, with the fixtures that are set up for it."""

    def __init__(
        self, events: Events, watchdog: Watchdog, is_chosen: Callable[..., bool], absent: Mapping[str, str]
    ) -> None:
        """
        :param absent: modules that cannot be found, and why: each is an error, as one that cannot be loaded
        """
        self._events = events
        self._watchdog = watchdog
        self._is_chosen = is_chosen
        self._collector: Any = None
        #: modules that cannot be collected, and why
        broken = {f"collecting ({name})": reason for name, reason in absent.items()}
        self._broken = {key: reason for key, reason in broken.items() if is_chosen(key, True)}
        # Of the running test.
        self._key = self._outcome = ""
        self._details: list[str] = []
        self._seconds = 0.0

    def pytest_collectstart(self, collector: Any) -> None:
        self._collector = collector

    def pytest_collectreport(self, report: Any) -> None:
        # Relative to where it is imported from, so that it has the same id in each environment.
        path = self._collector.path
        places = [each for each in sys.path if each and path.is_relative_to(each)]
        key = printable(f"collecting ({os.path.relpath(path, max(places, key=len, default='/'))})")
        if report.failed and self._is_chosen(key, True):
            self._broken[key] = report.longreprtext

    def pytest_pycollect_makeitem(self, obj: Any) -> list[Any] | None:
        # As unittest, and unlike pytest, make no instance of a test case without tests: it may be a helper.
        import unittest

        if not isinstance(obj, type) or not issubclass(obj, unittest.TestCase):
            return None
        return None if hasattr(obj, "runTest") or unittest.TestLoader().getTestCaseNames(obj) else []

    def pytest_collection_finish(self, session: Any) -> None:
        session.items[:] = [item for item in session.items if self._is_chosen(key_of(item))]
        self._watchdog.arm()
        self._events.emit("loaded", [*self._broken, *map(key_of, session.items)])
        for key, detail in self._broken.items():
            self._events.end(key, "error", detail, 0.0)

    def pytest_runtest_protocol(self, item: Any) -> None:
        if hasattr(item, "addSuccess"):
            item.runtest = partial(run_case, item)
        self._key, self._outcome, self._details, self._seconds = key_of(item), "pass", [], 0.0
        self._events.emit("start", self._key)
        self._watchdog.arm()

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._events.end_escaped()
        self._seconds += report.duration
        outcome = _outcome_of(report)
        self._outcome = max(self._outcome, outcome, key=ENDS.index)
        if outcome not in ("pass", "xfail"):
            # A subtest's has what it is given.
            self._details.append(f"{report.head_line}\n{report.longreprtext}")

    def pytest_runtest_logfinish(self) -> None:
        self._events.end(self._key, self._outcome, "\n".join(self._details), self._seconds)
        # The end of a fixture of the module or the session counts for its last test.
        self._watchdog.arm()


def run_case(item: Any) -> None:
    """Run a test case as unittest does, in all of its scenarios; one that fails is the test's outcome.

    pytest would run it in none, and delete an attribute afterwards, which nova's tests have deleted already.
    """
    cases = [item.instance]
    if getattr(item.instance, "scenarios", None):
        cases = importlib.import_module("testscenarios").generate_scenarios(item.instance)
    for case in cases:
        case(result=item)


def _outcome_of(report: Any) -> str:
    """pytest's report of a test, its fixtures or a subtest, in unittest's words."""
    if report.skipped:
        # A skipped subtest is not a skipped test.
        return "xfail" if hasattr(report, "wasxfail") else "pass" if hasattr(report, "context") else "skip"
    if report.failed:
        return "fail" if report.when == "call" else "error"
    return "xpass" if hasattr(report, "wasxfail") else "pass"


def run(arguments: list[str], plugin: Plugin) -> None:
    """Run the tests that these arguments name; ends the process if pytest does not come to its end."""
    import pytest

    # Only plugins that the suite names: others may be installed that change its tests, or fail under eventlet.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    # The first one takes the watchdog's timer, and the second writes into upstream's tree.
    without = ("-pno:faulthandler", "-pno:cacheprovider")
    options = (*without, "--continue-on-collection-errors", "--tb=native")
    status = pytest.main([*options, *arguments], plugins=[plugin])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
        sys.exit(f"pytest ends with {status!r}")


def why_absent(module: str) -> str:
    """Why a module cannot be found, empty if it can; imports the packages that it is in."""
    try:
        return "" if importlib.util.find_spec(module) else "there is no such module"
    except Exception:
        return traceback.format_exc()


def prepare(prelude: str) -> None:
    """Do what a service does before its imports: nothing, monkey patching, or importing a module that does it."""
    if prelude == "monkey_patch":
        import eventlet

        eventlet.monkey_patch()
    elif prelude:
        importlib.import_module(prelude)


def follow_imports() -> set[str]:
    """The files whose code is run from now on, or would be if it could be compiled."""
    found: set[str] = set()

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "exec":
            found.add(arguments[0].co_filename)
        elif event == "compile" and isinstance(arguments[1], str):
            found.add(arguments[1])

    sys.addaudithook(note)
    return found


def main() -> None:
    del sys.path[0]  # this directory
    job = json.load(sys.stdin)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.path[:0] = job["path"]
    events = Events(job["events"], job.pop("word"), job["taken"])
    watchdog = Watchdog(job["limit"], job["load_limit"], job["trace"])

    # Where no test is to be run, the question is what the tests would import.
    files = follow_imports() if job["only"] == [] else set()
    prepare(job["prelude"])
    if job["patched"]:
        import fastio

        os.environ[CHILDREN_VARIABLE] = "1"
        fastio.patch()
        for name, value in job["constants"].items():
            module, _, constant = name.partition(":")
            setattr(importlib.import_module(module), constant, value)

    watchdog.arm(loading=True)
    only = None if job["only"] is None else set(job["only"])
    done = set(job["done"])

    def is_chosen(key: str, module: bool = False) -> bool:
        """
        :param module: whether it stands for a module that cannot be loaded: its tests may be those that are meant
        """
        return key not in done and (module or job["match"] in key) and (only is None or key in only)

    absent = {name: reason for name in job["modules"] if (reason := why_absent(name))}
    if len(absent) == len(job["modules"]):
        # pytest ends with what it says of them.
        absent = {}
    arguments = [each for each in job["pytest"] if each not in absent]
    run(arguments, Plugin(events, watchdog, is_chosen, absent))
    faulthandler.cancel_dump_traceback_later()
    events.emit("finish", fastio.status().to_dict() if job["patched"] else None, sorted(files))
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads and greenlets that the tests left behind are no business of the comparison.
    os._exit(0)


if __name__ == "__main__":
    main()
