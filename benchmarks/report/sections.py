"""Results as sections of a page: the same for all suites."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import results, tables
from benchmarks.harness.page import Code, Folded, Notes, Part, Section, Text
from benchmarks.harness.results import CaseResult, Result, ResultError
from benchmarks.harness.suites import Suite
from fastio.tables import Table

#: The meaning of the columns of all suites.
MEANING = (
    "Figures are medians of the rounds; ± is the median absolute deviation: half of the rounds are no further off.",
    "“x stock” is how many times better a row is than the one it is compared with, in brackets the 95 % interval by "
    "bootstrap. More than 1 is better, also where less of the unit is.",
    "Rows are interleaved, in another order in each round, each run in a fresh process, so that a slow phase of the "
    "machine meets all of them.",
    "“reference” is the same work without Python, such as the backend's own client. Rows may be faster.",
    "CPU seconds include those of the children. A row of which a run had wrong data is marked as such.",
)


@dataclass(frozen=True)
class Given:
    """A result, and where it was read."""

    path: Path
    result: Result
    suite: Suite
    #: in headings
    name: str


def read(paths: Sequence[Path]) -> list[Given]:
    """The results in these files.

    :raises ResultError: if one is missing, is none, or is of a suite that is not known; it names the file
    """
    found: list[Given] = []
    for path in paths:
        if any(path.samefile(each.path) for each in found if path.exists()):
            raise ResultError(f"{path}: given twice")
        try:
            result = results.read(path)
        except OSError as error:
            raise ResultError(f"{path}: {error.strerror or error}") from error
        try:
            tables.summary(result)
            suite = Suite(result.suite)
        except ResultError as error:
            raise ResultError(f"{path}: {error}") from error
        except (KeyError, TypeError, AttributeError) as error:
            raise ResultError(f"{path}: incomplete: its machine or its versions lack {error}") from error
        if not result.cases:
            raise ResultError(f"{path}: there is no case in it")
        taken = path.stem in [each.name for each in found]
        found.append(Given(path, result, suite, str(path) if taken else path.stem))
    return found


def of_all(given: Sequence[Given]) -> list[Section]:
    """The whole page."""
    made = [_summary(given)] if len(given) > 1 else []
    made += [of_result(each) for each in given]
    return [*made, Section("How to read this", [Notes(MEANING)])]


def _summary(given: Sequence[Given]) -> Section:
    head = ["", "suite", "started", "cases", "rows", "complete"]
    rows = []
    for each in given:
        bad = problems(each.result)
        variants = sum(len(case.variants) for case in each.result.cases)
        rows.append([
            each.name, each.result.suite, each.result.started[:16].replace("T", " "), str(len(each.result.cases)),
            str(variants), f"no: {count(len(bad), 'note')}" if bad else "yes",
        ])  # fmt: skip
    return Section("Results", [Table("All results of this page", head, rows)])


def count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def problems(result: Result) -> list[str]:
    """Return the gaps and errors of a result, a line each."""
    found = []
    for case in result.cases:
        name = case.title or case.name
        if not case.complete:
            found.append(f"{name}: interrupted: not all runs were made")
        for title, variant in case.variants.items():
            found += [f"{name}: {title}: {each}" for each in variant.troubles() if not variant.skipped]
    return found


def of_result(given: Given) -> Section:
    """One result."""
    result = given.result
    parts: list[Part] = [Text(given.suite.about)]
    bad = problems(result)
    if bad:
        parts += [Text("Not all of it is there, or right", "bad"), Notes(bad)]
    if "--quick" in result.command:
        parts.append(Text("A quick run: it only shows that the suite works, its figures are not judged.", "bad"))
    else:
        parts += given.suite.judgement(result)
    draw = _drawing()
    if draw is None:
        parts.append(Text("There are no plots: matplotlib is not installed, it comes with the extra 'plot'."))
    else:
        parts += [*draw.of_all(result), *draw.of_suite(given.suite, result)]
    parts += [_case(case, result, draw) for case in result.cases]
    parts.append(Section("How it was measured", [*_how(given)]))
    return Section(given.name, parts)


def _drawing() -> Any:
    """The module that draws; None where matplotlib is not installed."""
    try:
        from benchmarks.report import pictures
    except ImportError:
        return None
    return pictures


def _case(case: CaseResult, result: Result, draw: Any) -> Section:
    table = tables.table(case, result.machine)
    figures = Table(f"{table.title}: medians and spread", table.head, table.rows, table.notes)
    return Section(table.title, [*(draw.of_case(case) if draw is not None else ()), figures])


def _how(given: Given) -> Iterator[Part]:
    result = given.result
    ended = f", ended {result.finished}" if result.finished else ""
    yield Text(f"Started {result.started}{ended}, with this command:")
    yield Code(shlex.join(result.command))
    yield Notes(tables.summary(result))
    yield from (
        Folded(f"Output of {title} ({case.title or case.name})", [Code(variant.failure["stderr"])])
        for case in result.cases for title, variant in case.variants.items()
        if variant.failure and variant.failure["stderr"].strip()
    )  # fmt: skip
