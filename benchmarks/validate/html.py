"""The report of a validation: one HTML file that needs no other."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

import fastio
from benchmarks.harness import tables as cases
from benchmarks.tools.upstream.report import Table
from fastio import page
from fastio.page import Code, Folded, Notes, Part, Plot, Section, Text

from . import tables
from .outcome import Outcome, PythonOutcome


def report(outcome: Outcome, plots: Sequence[Plot]) -> str:
    """The page.

    :param plots: of the benchmarks, every run in them
    """
    failures = outcome.failures()
    sections = [
        _section("What was compared", tables.variants(outcome)),
        _section("Suites", tables.suites(outcome)),
        _section("Tests whose outcome differs", tables.differences(outcome)),
        Section("What the tests say", [*map(Text, tables.suite_notes(outcome)), *_folded(tables.tracebacks(outcome))]),
        _section("Benchmarks", tables.benchmarks(outcome)),
        Section("The benchmarks' figures", [*map(Text, tables.benchmark_notes(outcome)), *_figures(outcome, plots)]),
        Section("How this was made", [
            Text(f"{tables.machine_line(outcome)}; fastio {fastio.__version__}"),
            Code(f"fastio validate {shlex.join(outcome.command)}"),
            *_folded([*_packages(outcome), *_candidate(outcome)]),
            Text("The raw data is in raw.json beside this file."),
        ]),
    ]  # fmt: skip
    lead: list[Part] = [
        Text(tables.headline(outcome), "bad" if failures else "good"),
        Notes([*tables.verdicts(outcome), *failures]),
    ]
    return page.html(tables.title(outcome), [each for each in sections if each.parts], lead=lead)


def _section(heading: str, table: Table) -> Section:
    head, rows = table
    return Section(heading, [page.Table(heading, head, rows)] if rows else [])


def _folded(texts: Iterator[tuple[str, str]] | Sequence[tuple[str, str]]) -> list[Part]:
    return [Folded(heading, [Code(text)]) for heading, text in texts]


def _figures(outcome: Outcome, plots: Sequence[Plot]) -> list[Part]:
    shown: list[Part] = [Folded("Every run", plots)] if plots else []
    return shown + [part for each in outcome.pythons for part in _cases(each)]


def _cases(each: PythonOutcome) -> list[Part]:
    if each.benchmarks is None or not each.benchmarks.cases:
        return []
    shown = map(cases.table, each.benchmarks.cases)
    parts = [page.Table(table.title, table.head, table.rows, table.notes) for table in shown]
    return [Folded(f"Each benchmark in full, Python {each.python.version}", parts)]


def _packages(outcome: Outcome) -> list[tuple[str, str]]:
    return [
        (
            f"What is installed: Python {each.python.version}, {variant.name}",
            "\n".join(f"{name}=={version}" for name, version in variant.environment.versions().items()),
        )
        for each in outcome.pythons
        for variant in each.variants
    ]


def _candidate(outcome: Outcome) -> list[tuple[str, str]]:
    candidate = outcome.candidate
    if candidate is None or candidate.kind != "diff":
        return []
    return [(f"The diff: {candidate.text}", candidate.path.read_text(errors="replace"))]
