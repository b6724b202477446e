"""A kept history of verdicts, and what has changed since the last one of the same project and candidate.

The file has a line of JSON for each verdict. It is read as a whole before anything is run, and written as a whole: what
cannot be read is named and left as it is.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import fastio
from benchmarks.harness import compare
from benchmarks.harness.machine import STABLE
from benchmarks.harness.statistics import Interval

from . import findings
from .changes import Changes
from .errors import ValidateError
from .findings import ERROR
from .outcome import Outcome

FORMAT = "fastio-validation-history"
VERSION = 1

PASSED, FAILED = "passed", "failed"

#: What every verdict has, and of which type.
_FIELDS = {
    "project": str, "candidate": str, "digest": str, "started": str, "fastio": str, "verdict": str, "machine": dict,
    "base": dict, "ran": list, "failures": list, "rows": list,
}  # fmt: skip

#: Of the lists, how long their lines may be; the last three of a row are numbers.
_LENGTHS = {"ran": (3, 4), "failures": (4,), "rows": (7,)}


class History:
    """The verdicts in a file."""

    def __init__(self, path: Path) -> None:
        """
        :raises ValidateError: if the file is none of verdicts, or damaged
        """
        self._path = path
        if path.is_dir():
            raise ValidateError(f"--history {path} is a directory; allowed is a file, which is made if there is none")
        if not os.access(path if path.exists() else _existing(path), os.W_OK):
            raise ValidateError(f"--history {path} cannot be written")
        self._read()

    def changes(self, outcome: Outcome) -> Changes:
        """What has changed since the last verdict of the same project and candidate."""
        now = record(outcome)
        same = [each for each in self._read() if _identity(each) == _identity(now)]
        return changes(same[-1], now) if same else Changes()

    def add(self, outcome: Outcome) -> None:
        """Keep a verdict.

        :raises ValidateError: if the file has been damaged in the meantime
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked():
            self._read()
            before = self._path.read_bytes() if self._path.exists() else b""
            partial = self._path.with_name(f"{self._path.name}.{os.getpid()}")
            with open(partial, "wb") as file:
                file.write(before + json.dumps(record(outcome), separators=(",", ":")).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, self._path)

    def _read(self) -> list[dict[str, Any]]:
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return []
        *lines, rest = content.split(b"\n")
        found = [self._verdict(number, line) for number, line in enumerate(lines, 1)]
        if rest:
            raise self._damaged(len(lines) + 1, "it is cut off")
        return found

    def _verdict(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            found = json.loads(line)
        except ValueError as error:
            raise self._damaged(number, f"it is no JSON: {error}") from None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise self._damaged(number, f"it is no verdict (no format {FORMAT!r} in it)")
        if found.get("version") != VERSION:
            raise self._damaged(number, f"its version is {found.get('version')!r}, and this program reads {VERSION}")
        wrong = [name for name, kind in _FIELDS.items() if not isinstance(found.get(name), kind)]
        wrong += [
            name for name, length in _LENGTHS.items() if name not in wrong and not _of_length(found[name], length)
        ]
        if wrong:
            raise self._damaged(number, f"it has no {', '.join(wrong)}, or of another form")
        return found

    def _damaged(self, number: int, why: str) -> ValidateError:
        return ValidateError(
            f"--history {self._path}: line {number} cannot be read: {why}; nothing was written: repair or remove that "
            "line, or give another file"
        )

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Another validation may end at the same time."""
        with open(self._path.with_name(f"{self._path.name}.lock"), "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _of_length(lines: list[Any], allowed: Sequence[int]) -> bool:
    return all(
        isinstance(line, list) and len(line) in allowed and all(isinstance(each, int | float) for each in line[4:])
        for line in lines
    )


def _existing(path: Path) -> Path:
    return next(each for each in path.absolute().parents if each.exists())


def record(outcome: Outcome) -> dict[str, Any]:
    """What is kept of a verdict."""
    candidate = outcome.candidate
    name = "fastio" if candidate is None else candidate.change.ref if candidate.change else candidate.name
    return {
        "format": FORMAT,
        "version": VERSION,
        "project": outcome.project.name,
        "candidate": name,
        "commit": candidate.change.commit if candidate and candidate.change else "",
        "digest": candidate.digest if candidate else "",
        "started": outcome.started,
        "fastio": fastio.__version__,
        "verdict": FAILED if outcome.failures() else PASSED,
        "machine": {key: outcome.machine.get(key) for key in STABLE},
        "base": {each.python.version: each.variants[0].version for each in outcome.pythons},
        # Suites, and benchmarks.
        "ran": [*([each.python.version, compared.variant, compared.name]
                  for each in outcome.pythons for compared in each.suites if not compared.comparison.unavailable),
                *([each.python.version, row.variant, row.mode, row.case]
                  for each in outcome.pythons for row in each.rows if row.better or row.failure)],
        "failures": [[each.python, each.variant, each.within, each.subject]
                     for each in findings.of(outcome) if each.rule.level == ERROR],
        "rows": [[each.python.version, row.variant, row.mode, row.case, *row.better]
                 for each in outcome.pythons for row in each.rows if row.better],
    }  # fmt: skip


def _identity(verdict: dict[str, Any]) -> tuple[str, str]:
    return verdict["project"], verdict["candidate"]


def changes(last: dict[str, Any], now: dict[str, Any]) -> Changes:
    """What is not as it was: a verdict, tests, and benchmarks, of what was run both times."""
    made = Changes(last["started"])
    differs = compare.differing("fastio", {"": last["fastio"]}, {"": now["fastio"]})
    differs += compare.differing("Python, and the release", last["base"], now["base"])
    differs += compare.differing("machine", last["machine"], now["machine"])
    made.differs = differs
    if last["verdict"] != now["verdict"]:
        (made.worse if now["verdict"] == FAILED else made.better).append(f"{last['verdict']} -> {now['verdict']}")
    before, after = _failures(last), _failures(now)
    both = {tuple(each) for each in last["ran"]} & {tuple(each) for each in now["ran"]}
    made.worse += [f"newly fails: {_named(each)}" for each in after if each not in before and _was_run(each, both)]
    made.better += [f"no longer fails: {_named(each)}" for each in before if each not in after and _was_run(each, both)]
    earlier = dict(_rows(last))
    for key, ratio in _rows(now):
        old = earlier.get(key)
        # Either of them alone happens now and then without a reason.
        if old and not old.low <= ratio.ratio <= old.high and not ratio.low <= old.ratio <= ratio.high:
            moved = made.worse if ratio.ratio < old.ratio else made.better
            moved.append(f"{_named(key)}: {old} -> {ratio} times as good as stock")
    return made


def _failures(verdict: dict[str, Any]) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(tuple(each) for each in verdict["failures"]))


def _rows(verdict: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], Interval]]:
    for *key, ratio, low, high in verdict["rows"]:
        yield tuple(key), Interval(ratio, low, high)


def _was_run(failure: tuple[str, ...], both: set[tuple[str, ...]]) -> bool:
    return failure in both or failure[:3] in both


def _named(key: tuple[str, ...]) -> str:
    python, variant, within, subject = key
    return f"Python {python}: {variant}: {within}: {subject}"
