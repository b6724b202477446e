"""Applying one mutant to a copy of the checkout, and seeing what its tests say."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tools.mutants.listed import ListError, Mutant
from benchmarks.tools.watchdog import VARIABLE

#: What the tests need of the checkout.
_COPIED = ("fastio", "tests", "benchmarks", "doc", "setup.cfg", "setup.py", "tox.ini", "README.rst", ".gitignore")

#: Seconds for one test with a fault; without it none takes a tenth of that.
LIMIT = 30

#: Seconds for all tests of one mutant, whatever pytest does.
_PATIENCE = 600

#: A line of pytest's summary, or of the summary of a run that was stuck: the test, and the reason.
_FAILED = re.compile(r"^(FAILED|ERROR) ([^\[\n]*?(?:\[.*?\])?)(?: - (.*))?$", re.MULTILINE)

#: Exceptions which say that the mutant cannot be run at all, and not that a test has seen it.
_BROKEN = re.compile(r'File "|(Syntax|Indentation|Import|ModuleNotFound|Name|UnboundLocal)Error\b')


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
class _Run:
    """One run of pytest: its exit status, and all that it has printed."""

    status: int
    output: str

    @property
    def passed(self) -> int:
        """How many tests have."""
        found = re.search(r"(\d+) passed", self.output.strip().rpartition("\n")[2])
        return int(found[1]) if found else 0

    def verdict(self) -> Verdict:
        """What its first failure says."""
        _, _, summary = self.output.rpartition("= short test summary info =")
        failed = _FAILED.search(summary)
        if failed is None:
            if self.status == 0 and self.passed:
                return Verdict("SURVIVED", f"{self.passed} tests pass with it")
            return Verdict("BROKEN", f"no test was run; pytest ended with {self.status}:\n{self.output}")
        word, test, text = failed.groups("")
        # A test that failed only while its fixtures ended has seen it as well.
        begun = word == "FAILED" or re.search("^_+ ERROR at teardown of ", self.output, re.MULTILINE)
        if not begun or _BROKEN.match(text):
            return Verdict("BROKEN", f"{test}: {text}")
        return Verdict("killed", f"{test}: {text}", test)


class Copy:
    """A copy of the checkout at ``root``, in a temporary directory, in which one mutant at a time is applied."""

    def __init__(self, root: Path) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="fastio-mutants-"))
        self._applied = 0
        ignored = shutil.ignore_patterns("__pycache__", "*.pyc", "results", "build", ".hypothesis")
        for name in _COPIED:
            if (root / name).is_dir():
                shutil.copytree(root / name, self.directory / name, ignore=ignored)
            elif (root / name).exists():
                shutil.copy2(root / name, self.directory / name)

    def __enter__(self) -> Copy:
        return self

    def __exit__(self, *exc_info: object) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)

    def judge(self, mutant: Mutant) -> Verdict:
        """Apply the mutant, run its tests, and take it back; the test that has seen it must pass without it."""
        path = self.directory / mutant.file
        try:
            text = path.read_text(encoding="utf-8")
            faulty = mutant.applied(text)
        except (OSError, ListError) as error:
            return Verdict("STALE", str(error))
        try:
            self._write(path, faulty)
            verdict = self._pytest(mutant.tests, mutant.eventlet).verdict()
        finally:
            self._write(path, text)
        if verdict.word == "killed":
            without = self._pytest([verdict.test], mutant.eventlet)
            if without.status or not without.passed:
                return Verdict("UNSURE", f"{verdict.test} does not pass without it:\n{without.output}")
        return verdict

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        # Python compares size and time, in seconds, with those of what it has compiled.
        self._applied += 1
        os.utime(path, (self._applied, self._applied))

    def _pytest(self, tests: Sequence[str], eventlet: bool) -> _Run:
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("FASTIO", "PYTEST"))}
        # Compiling all modules for each mutant would take longer than the tests.
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        environ.update({"PYTHONPATH": str(self.directory), "TEST_EVENTLET": str(int(eventlet)), VARIABLE: str(LIMIT)})
        # As in CI pytest does not cut the lines of its summary.
        environ["BUILD_NUMBER"] = "1"
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-x", "--tb=short", "-p", "no:cacheprovider", *tests],
                cwd=self.directory, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors="replace", timeout=_PATIENCE,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return _Run(-1, f"pytest has not ended within {_PATIENCE} s")
        return _Run(done.returncode, done.stdout)
