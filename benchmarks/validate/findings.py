"""What speaks against a variant, one by one, each with a rule and a place in the project's source tree.

For machines that show findings beside a change: :mod:`.sarif` and :mod:`.annotations`. Each line of
:meth:`benchmarks.validate.outcome.Outcome.failures` is a finding of level ``error``, and the other way round.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.harness import compare
from benchmarks.tools.upstream.compare import Difference

from .bisection import Key
from .measurements import TOO_SLOW, Row
from .outcome import Outcome, PythonOutcome
from .projects import Project
from .suites import WORDS, Compared
from .variants import CANDIDATE, Variant

#: Levels, named as SARIF names them. Only errors fail the validation.
LEVELS = ERROR, WARNING, NOTE = "error", "warning", "note"


@dataclass(frozen=True)
class Rule:
    """One kind of finding."""

    #: stable: code scanning follows findings by it
    id: str
    level: str
    text: str


NEWLY_FAILS = Rule("test-newly-fails", ERROR, "A test has a worse outcome than in stock, also when it is run alone.")
SUITE = Rule("suite-fails", ERROR, "A suite cannot be run to its end, or shows nothing.")
BENCHMARK = Rule("benchmark-fails", ERROR, "A benchmark fails or has wrong data, and stock's does not.")
TOO_SLOW_RULE = Rule("benchmark-too-slow", ERROR, f"A benchmark is slower than in stock, {TOO_SLOW} times or more.")
NOT_MEASURED = Rule("benchmarks-not-run", ERROR, "Every benchmark is skipped, which shows nothing.")
SKIPPED = Rule("benchmark-skipped", WARNING, "A benchmark cannot be run here, and shows nothing.")
SLOWER = Rule("benchmark-slower", WARNING, f"A benchmark is slower than in stock, less than {TOO_SLOW} times.")
CHANGED = Rule("test-changed", NOTE, "A test has another outcome than in stock, neither better nor worse.")
FLAKY = Rule("test-flaky", NOTE, "A test had a worse outcome than in stock, but not when it was run alone.")

RULES = (NEWLY_FAILS, SUITE, BENCHMARK, TOO_SLOW_RULE, NOT_MEASURED, SKIPPED, SLOWER, CHANGED, FLAKY)


@dataclass(frozen=True)
class Finding:
    """One of them."""

    rule: Rule
    #: version
    python: str
    variant: str
    #: the suite; of a benchmark the mode
    within: str
    #: what was run: the id of a test, the name of a suite, or SUITE/CASE
    subject: str
    #: the variant, the subject and what became of it, in a line
    message: str
    #: relative to the root of the project's source tree, with slashes
    file: str
    line: int
    #: traceback, if there is one
    detail: str = ""
    #: the candidate's commit that has brought it, if that was looked for
    since: str = ""

    @property
    def key(self) -> Key:
        return self.python, self.within, self.subject

    @property
    def benchmark(self) -> bool:
        """Whether it is one of a benchmark, and not of a test."""
        return self.rule in (BENCHMARK, TOO_SLOW_RULE, NOT_MEASURED, SKIPPED, SLOWER)

    def __str__(self) -> str:
        return f"Python {self.python}: {self.message}"


def of(outcome: Outcome) -> list[Finding]:
    """All findings, Python by Python, suites first."""
    found = [finding for each in outcome.pythons for finding in _of_python(outcome.project, each)]
    since = outcome.bisection.since if outcome.bisection else lambda key: ""
    return [replace(each, since=since(each.key)) if each.variant == CANDIDATE else each for each in found]


def _of_python(project: Project, each: PythonOutcome) -> Iterator[Finding]:
    variants = {variant.name: variant for variant in each.variants}

    def finding(rule: Rule, variant: str, within: str, subject: str, message: str, detail: str = "") -> Finding:
        file, line = _place(detail, variants[variant], project)
        return Finding(rule, each.python.version, variant, within, subject, message, file, line, detail)

    for compared in each.suites:
        name = compared.variant
        for rule, test, message, detail in _of_suite(compared):
            yield finding(rule, name, compared.name, test, f"{name}: {compared.name}: {message}", detail)
    for row in each.rows:
        rule_of_row = _rule(row)
        if rule_of_row is not None:
            yield finding(rule_of_row, row.variant, row.mode, row.case, str(row))


def _of_suite(compared: Compared) -> Iterator[tuple[Rule, str, str, str]]:
    """The rule, the subject, the message and the traceback of each finding."""
    for each in compared.found(WORDS["worse"]):
        yield NEWLY_FAILS, *_of_test(each)
    for fault in compared.comparison.faults:
        yield SUITE, compared.name, fault, ""
    for each in compared.found(WORDS["changed"]):
        yield CHANGED, *_of_test(each)
    for each in compared.found(WORDS["not reproduced"]):
        if each.looks_worse():
            yield FLAKY, *_of_test(each)


def _of_test(found: Difference) -> tuple[str, str, str]:
    return found.test, f"{found.test}: {found.stock.outcome} -> {found.patched.outcome}", found.patched.detail


def _rule(row: Row) -> Rule | None:
    if row.skipped:
        return NOT_MEASURED if row.failure else SKIPPED
    if row.failure:
        return TOO_SLOW_RULE if row.better else BENCHMARK
    return SLOWER if row.verdict == compare.SLOWER else None


_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)')
#: faulthandler lists frames from the inside out, a traceback from the outside in.
_INNERMOST_FIRST = "most recent call first"


def _place(detail: str, variant: Variant, project: Project) -> tuple[str, int]:
    """Where to show a finding: file and line.

    This is the innermost frame of a traceback in a file that the candidate changes, else in one of the project. Without
    any it is the first file that the candidate changes, else the package: GitHub refuses a finding without a place.
    """
    changed = [_in_tree(Path(name), project) for name in variant.changed]
    frames = [(_in_project(Path(path), variant, project), int(line)) for path, line in _FRAME.findall(detail)]
    if _INNERMOST_FIRST not in detail:
        frames.reverse()
    for file, line in frames:
        if file in changed:
            return file, line
    for file, line in frames:
        if file:
            return file, line
    return (changed[0] if changed else _in_tree(Path(project.package, "__init__.py"), project)), 1


def _in_project(path: Path, variant: Variant, project: Project) -> str:
    """A file of an environment, relative to the source tree; empty if it is not the project's."""
    installed = variant.environment.site_packages.absolute()
    if path.is_relative_to(installed / project.package):
        return _in_tree(path.relative_to(installed), project)
    tests = variant.environment.directory.absolute() / "upstream"
    return path.relative_to(tests).as_posix() if path.is_relative_to(tests) else ""


def _in_tree(path: Path, project: Project) -> str:
    """A file of the package, relative to site-packages, as it lies in the source tree."""
    return path.as_posix() if project.installed else Path("Lib", *path.parts[1:]).as_posix()
