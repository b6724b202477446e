"""Applying one mutant to a copy of the checkout, and seeing what its tests say."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tools.mutants import seen
from benchmarks.tools.mutants.listed import ListError, Mutant
from benchmarks.tools.watchdog import VARIABLE

#: What the tests need of the checkout.
_COPIED = ("fastio", "tests", "benchmarks", "doc", "setup.cfg", "setup.py", "tox.ini", "README.rst")

#: Seconds for one test with a fault; without it none takes a tenth of that.
LIMIT = 30

#: Seconds for all tests of one mutant, whatever pytest does.
_PATIENCE = 600

#: Exceptions which say that the mutant can not be run at all, and not that a test has seen it.
_BROKEN = {"SyntaxError", "ImportError", "NameError"}


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant.

    :param word: ``killed``, or ``SURVIVED``, ``BROKEN``, ``STALE``, ``UNSURE``, or ``skipped``
    :param detail: by which test and how, or why not
    :param test: the one that has seen it
    """

    word: str
    detail: str
    test: str = ""


@dataclass(frozen=True)
class _Failure:
    """The first test that has failed: in which phase, and with what exception, its bases included."""

    test: str
    phase: str
    types: Sequence[str]
    text: str


@dataclass(frozen=True)
class _Outcome:
    """One run of pytest: its exit status, what it has printed, and what has become of the tests."""

    status: int
    output: str
    passed: int = 0
    failed: _Failure | None = None


class Copy:
    """A copy of the checkout at ``root``, in a temporary directory, in which one mutant at a time is applied."""

    def __init__(self, root: Path) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="fastio-mutants-"))
        self._applied = 0
        ignored = shutil.ignore_patterns("__pycache__", "*.pyc", "results", "build", ".hypothesis")
        for name in _COPIED:
            if (root / name).is_dir():
                shutil.copytree(root / name, self._directory / name, ignore=ignored)
            elif (root / name).exists():
                shutil.copy2(root / name, self._directory / name)

    def __enter__(self) -> Copy:
        return self

    def __exit__(self, *exc_info: object) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)

    def judge(self, mutant: Mutant) -> Verdict:
        """Apply the mutant, run its tests, and take it back; the test that has seen it must pass without it."""
        path = self._directory / mutant.file
        try:
            text = path.read_text(encoding="utf-8")
            faulty = mutant.applied(text)
        except (OSError, ListError) as error:
            return Verdict("STALE", str(error))
        try:
            self._write(path, faulty)
            outcome = self._pytest(mutant.tests, mutant.eventlet)
        finally:
            self._write(path, text)
        verdict = _verdict(outcome)
        if verdict.word == "killed" and outcome.failed is not None:
            without = self._pytest([outcome.failed.test], mutant.eventlet)
            if without.status or not without.passed:
                return Verdict("UNSURE", f"{outcome.failed.test} does not pass without it:\n{without.output}")
        return verdict

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        # Python compares size and time, in seconds, with those of what it has compiled.
        self._applied += 1
        os.utime(path, (self._applied, self._applied))

    def _pytest(self, tests: Sequence[str], eventlet: bool) -> _Outcome:
        seen_in = self._directory / "seen.json"
        seen_in.unlink(missing_ok=True)
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("FASTIO", "PYTEST"))}
        # Compiling all modules for each mutant would take longer than the tests.
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        environ.update({"PYTHONPATH": str(self._directory), "TEST_EVENTLET": str(int(eventlet)), VARIABLE: str(LIMIT)})
        environ[seen.VARIABLE] = str(seen_in)
        command = [sys.executable, "-m", "pytest", "-q", "-x", "--tb=short", "-p", "no:cacheprovider"]
        try:
            done = subprocess.run(
                [*command, "-p", seen.__name__, *tests], cwd=self._directory, env=environ, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=_PATIENCE,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return _Outcome(-1, f"pytest has not ended within {_PATIENCE} s")
        limit = re.search(r"^FAILED (.*) - (not ended within its limit.*)", done.stdout, re.MULTILINE)
        if limit:
            return _Outcome(done.returncode, done.stdout, failed=_Failure(limit[1], "call", (), limit[2]))
        if not seen_in.exists():
            return _Outcome(done.returncode, done.stdout)
        found = json.loads(seen_in.read_text())
        failed = None if found["failed"] is None else _Failure(**found["failed"])
        return _Outcome(done.returncode, done.stdout, found["passed"], failed)


def _verdict(outcome: _Outcome) -> Verdict:
    failed = outcome.failed
    if failed is None:
        if outcome.status == 0 and outcome.passed:
            return Verdict("SURVIVED", f"{outcome.passed} tests pass with it")
        return Verdict("BROKEN", f"no test was run; pytest ended with {outcome.status}:\n{outcome.output}")
    if failed.phase in ("collect", "setup") or not _BROKEN.isdisjoint(failed.types):
        return Verdict("BROKEN", f"{failed.test}: {failed.text}")
    return Verdict("killed", f"{failed.test}: {failed.text}", failed.test)
