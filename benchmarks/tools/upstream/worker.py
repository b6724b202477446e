"""Runs one suite's tests in this process and reports each outcome as a line of JSON.

Started by path, so that neither this directory nor the project's ``tests`` package is importable: upstream has a
``tests`` package, too. Its job comes on stdin. Only the standard library is imported before the prelude, because what
is imported before ``eventlet.monkey_patch()`` is part of what the suites see. Each event begins with a word that only
the job has: what tests write to the stream is none.
"""

from __future__ import annotations

import faulthandler
import fcntl
import importlib
import json
import os
import signal
import sys
import time
import traceback
import types
import unittest
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

#: Read by the hook in the throw-away environment: child Pythons with it patch themselves as they start.
CHILDREN_VARIABLE = "FASTIO_UPSTREAM_CHILDREN"

#: The parent sends this shortly before a test's time is up, to see where every greenlet stands.
DUMP_SIGNAL = signal.SIGRTMAX

#: Own descriptors are kept above those that tests open, close and compare by number.
LOWEST_OWN_FD = 100

# Taken before the prelude: eventlet replaces the functions of os in place.
_write = os.write
_getpid = os.getpid
_monotonic = time.monotonic

_SEVERITY = ("pass", "xfail", "skip", "xpass", "fail", "error")


def open_own(path: str) -> int:
    """Open ``path`` for appending, on a descriptor out of the tests' way."""
    low = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    high = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, LOWEST_OWN_FD)
    os.close(low)
    return high


class Events:
    """The stream of events, silent in forked children."""

    def __init__(self, path: str, word: str, patches: Iterable[str] = ()) -> None:
        """
        :param word: that each event begins with
        :param patches: those whose calls are reported with each test
        """
        self._fd = open_own(path)
        self._word = word.encode()
        self._pid = _getpid()
        self._patches = patches

    def emit(self, event: str, **fields: Any) -> None:
        if _getpid() == self._pid:
            _write(self._fd, self._word + b" " + json.dumps({"event": event, **fields}).encode() + b"\n")

    def end(self, key: str, outcome: str, detail: str, seconds: float) -> None:
        """Tell what became of a test."""
        counters = sys.modules.get("fastio.counters")
        self.emit(
            "end", id=key, outcome=outcome, detail=detail[-8000:], seconds=round(seconds, 3),
            exchanges=counters.exchanges if counters else 0,
            taken={name: counters.of(name).calls for name in self._patches} if counters else {},
        )  # fmt: skip

    def end_escaped(self) -> None:
        """A forked child that a test let escape must not go on with the tests after it."""
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
        signal.signal(DUMP_SIGNAL, self._dump_greenlets)

    def arm(self, loading: bool = False) -> None:
        faulthandler.dump_traceback_later(self._load if loading else self._limit, exit=True, file=self._fd)

    def disarm(self) -> None:
        faulthandler.cancel_dump_traceback_later()

    def _dump_greenlets(self, _signum: int, frame: types.FrameType | None) -> None:
        import gc

        text = ["Running:\n", *traceback.format_stack(frame)]
        greenlet: Any = sys.modules.get("greenlet")
        for found in gc.get_objects() if greenlet else ():
            if isinstance(found, greenlet.greenlet) and found.gr_frame is not None:
                text += [f"Greenlet {found!r}:\n", *traceback.format_stack(found.gr_frame)]
        _write(self._fd, "".join(text).encode(errors="replace"))


class Result(unittest.TestResult):
    """Gathers what happens to a test until it has stopped, clean-ups and subtests included."""

    def __init__(self, events: Events, watchdog: Watchdog, keys: dict[int, str]) -> None:
        super().__init__()
        self._events = events
        self._watchdog = watchdog
        self._keys = keys
        self._current: Any = None
        self._outcome = ""
        self._details: list[str] = []
        self._started = 0.0
        #: modules and classes whose fixture failed or skipped, with outcome and detail
        self.fixtures: dict[str, tuple[str, str]] = {}

    def startTest(self, test: Any) -> None:
        super().startTest(test)
        self._current, self._outcome, self._details = test, "pass", []
        self._started = _monotonic()
        self._events.emit("start", id=self._keys[id(test)])
        self._watchdog.arm()

    def stopTest(self, test: Any) -> None:
        self._events.end_escaped()
        self._end(test, self._outcome, "\n".join(self._details), _monotonic() - self._started)
        self._current = None
        # Between tests run class and module fixtures, which can hang as well.
        self._watchdog.arm()
        super().stopTest(test)

    def addSkip(self, test: Any, reason: str) -> None:
        super().addSkip(test, reason)
        # A skipped subtest is not a skipped test.
        if not isinstance(test, unittest.case._SubTest):  # type: ignore[attr-defined]
            self._note(test, "skip", reason)

    def addError(self, test: Any, err: Any) -> None:
        super().addError(test, err)
        self._note(test, "error", self.errors[-1][1])

    def addFailure(self, test: Any, err: Any) -> None:
        super().addFailure(test, err)
        self._note(test, "fail", self.failures[-1][1])

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            failed = issubclass(err[0], test.failureException)
            text = (self.failures if failed else self.errors)[-1][1]
            self._note(test, "fail" if failed else "error", f"{subtest}\n{text}")

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        super().addExpectedFailure(test, err)
        self._note(test, "xfail", "")

    def addUnexpectedSuccess(self, test: Any) -> None:
        super().addUnexpectedSuccess(test)
        self._note(test, "xpass", "")

    def _note(self, test: Any, outcome: str, detail: str) -> None:
        if id(test) not in self._keys:
            # unittest puts an object of its own in a fixture's place, with an id such as "setUpClass (module.Class)"
            self.fixtures[test.id().partition("(")[2].rstrip(")")] = (outcome, f"{test.id()}: {detail}")
            if outcome != "skip":
                self._events.end(printable(test.id()), outcome, detail, 0.0)
        elif test is not self._current:
            # Python 3.12.1 does not start a test that a decorator skips
            self._end(test, outcome, detail, 0.0)
        else:
            self._outcome = max(self._outcome, outcome, key=_SEVERITY.index)
            if detail:
                self._details.append(detail)

    def end_the_rest(self) -> None:
        """Tell of the tests that were not started because of a fixture."""
        for key in list(self._keys.values()):
            causes = [found for name, found in self.fixtures.items() if key.startswith(name + ".")]
            outcome, detail = causes[0] if causes else ("error", "not started")
            self._events.end(key, outcome, detail, 0.0)

    def _end(self, test: Any, outcome: str, detail: str, seconds: float) -> None:
        self._events.end(self._keys.pop(id(test)), outcome, detail, seconds)


def flatten(tests: Any) -> Iterator[Any]:
    if isinstance(tests, unittest.TestSuite):
        for test in tests:
            yield from flatten(test)
    else:
        yield tests


def printable(name: str) -> str:
    """A test's name in one line."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in name)


def name_all(tests: Iterable[Any]) -> dict[str, Any]:
    """The tests by id; a repeated id gets a number."""
    named: dict[str, Any] = {}
    for test in tests:
        own, number = printable(test.id()), 2
        key = own
        while key in named:
            key, number = f"{own}#{number}", number + 1
        named[key] = test
    return named


class Plugin:
    """Of pytest: chooses the tests, and tells what becomes of each, with the fixtures that are set up for it."""

    def __init__(self, events: Events, watchdog: Watchdog, is_chosen: Callable[..., bool]) -> None:
        self._events = events
        self._watchdog = watchdog
        self._is_chosen = is_chosen
        #: of files that cannot be collected
        self._broken: list[tuple[str, str]] = []
        self._outcome = ""
        self._details: list[str] = []
        self._seconds = 0.0

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._broken.append((printable(f"collecting ({report.nodeid})"), report.longreprtext))

    def pytest_collection_finish(self, session: Any) -> None:
        session.items[:] = [item for item in session.items if self._is_chosen(printable(item.nodeid))]
        self._watchdog.arm()
        self._events.emit("loaded", chosen=[printable(item.nodeid) for item in session.items])
        for key, detail in self._broken:
            if self._is_chosen(key, True):
                self._events.end(key, "error", detail, 0.0)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._outcome, self._details, self._seconds = "pass", [], 0.0
        self._events.emit("start", id=printable(nodeid))
        self._watchdog.arm()

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._events.end_escaped()
        self._seconds += report.duration
        outcome = _outcome_of(report)
        self._outcome = max(self._outcome, outcome, key=_SEVERITY.index)
        if outcome not in ("pass", "xfail"):
            self._details.append(report.longreprtext)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._events.end(printable(nodeid), self._outcome, "\n".join(self._details), self._seconds)
        # What a fixture of the module or the session does at its end counts for its last test.
        self._watchdog.arm()


def _outcome_of(report: Any) -> str:
    """What pytest reports of a test, its fixtures or a subtest, in unittest's words."""
    if report.skipped:
        return "xfail" if hasattr(report, "wasxfail") else "skip"
    if report.failed:
        return "fail" if report.when == "call" else "error"
    return "xpass" if hasattr(report, "wasxfail") else "pass"


def run_by_unittest(
    job: dict[str, Any], events: Events, watchdog: Watchdog, is_chosen: Callable[..., bool]
) -> None:  # fmt: skip
    # Those of a module that cannot be imported are one that fails.
    loaded = map(unittest.defaultTestLoader.loadTestsFromName, job["modules"])
    named = name_all(test for each in loaded for test in flatten(each))
    chosen = {key: test for key, test in named.items() if is_chosen(key, _stands_for_a_module(test))}
    watchdog.arm()
    events.emit("loaded", chosen=list(chosen))

    keys = {id(test): key for key, test in chosen.items()}
    result = Result(events, watchdog, keys)
    unittest.TestSuite(chosen.values()).run(result)
    result.end_the_rest()


def _stands_for_a_module(test: Any) -> bool:
    return type(test).__name__ == "_FailedTest"


def run_by_pytest(arguments: Sequence[str], plugin: Plugin) -> None:
    """Run the tests that these arguments name; ends the process if pytest does not come to its end."""
    import pytest

    # Only plugins that the suite names: others may be installed that change its tests, or fail under eventlet.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    # The first one takes the watchdog's timer, and the second writes into upstream's tree.
    without = ("-pno:faulthandler", "-pno:cacheprovider")
    status = pytest.main([*without, "--continue-on-collection-errors", *arguments], plugins=[plugin])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
        sys.exit(f"pytest ends with {status!r}")


def prepare(prelude: str) -> None:
    """Do what a service does before its imports: nothing, monkey patching, or importing a module that does it."""
    if prelude == "monkey_patch":
        import eventlet

        eventlet.monkey_patch()
    elif prelude:
        importlib.import_module(prelude)


def main() -> None:
    del sys.path[0]  # this directory
    job = json.load(sys.stdin)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.path[:0] = job["path"]
    events = Events(job["events"], job.pop("word"), job["taken"])
    watchdog = Watchdog(job["limit"], job["load_limit"], job["trace"])

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

    if job["pytest"]:
        run_by_pytest(job["pytest"], Plugin(events, watchdog, is_chosen))
    else:
        run_by_unittest(job, events, watchdog, is_chosen)
    watchdog.disarm()
    events.emit("finish", status=fastio.status().to_dict() if job["patched"] else None)
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads and greenlets that the tests left behind are no business of the comparison.
    os._exit(0)


if __name__ == "__main__":
    main()
