"""The report of a validation: one HTML file that needs no other, and in short as markdown, for a review."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import fastio
from benchmarks.harness import markup, page
from benchmarks.harness import tables as cases
from benchmarks.harness.page import Code, Folded, Notes, Part, Plot, Section, Text
from fastio.tables import Table

from . import tables
from .outcome import Outcome

#: A comment that lists more is not read; the report has all of them.
MOST = 40


def html(outcome: Outcome, plots: Sequence[Plot]) -> str:
    """The page.

    :param plots: of the benchmarks, every run in them
    """
    shown: list[Part] = [Folded("Every run", plots)] if plots else []
    sections = [
        *map(_section, tables.found(outcome)),
        Section("Messages of the tests", _folded(tables.tracebacks(outcome))),
        Section("The benchmarks' figures", shown + _cases(outcome)),
        Section("How this was made", [
            Text(f"{tables.machine_line(outcome)}; fastio {fastio.__version__}"),
            Code(_command(outcome)),
            *_folded([*_packages(outcome), *_candidate(outcome)]),
            Text("The raw data is in raw.json beside this file."),
        ]),
    ]  # fmt: skip
    failures = outcome.failures()
    tone = "bad" if failures else "good" if tables.was_run(outcome) else ""
    lead: list[Part] = [Text(tables.headline(outcome), tone), Notes([*_said(outcome), *failures])]
    return page.html(tables.title(outcome), [each for each in sections if each.parts], lead=lead)


def markdown(outcome: Outcome) -> str:
    """The same in short."""
    failures = [failure.splitlines()[0] for failure in outcome.failures()]
    more = [f"and {len(failures) - MOST} more"] if len(failures) > MOST else []
    notes = [*_said(outcome), *failures[:MOST], *more]
    blocks = [
        f"# {markup.inline(tables.title(outcome))}",
        f"**{tables.headline(outcome)}**",
        "\n".join(f"- {markup.inline(note)}" for note in notes),
        *(markup.markdown(_shortened(table)) for table in tables.found(outcome)),
        f"{tables.machine_line(outcome)}; fastio {fastio.__version__}",
        f"    {_command(outcome)}".replace("\n", "\n    "),
    ]
    return "\n\n".join(blocks) + "\n"


def _said(outcome: Outcome) -> list[str]:
    return [*tables.environments(outcome), *tables.verdicts(outcome)]


def _command(outcome: Outcome) -> str:
    return f"fastio validate {shlex.join(outcome.command)}"


def _section(table: Table) -> Section:
    return Section(table.title, [replace(table, title="")])


def _shortened(table: Table) -> Table:
    more = [f"… and {len(table.rows) - MOST} more, in the report"] if len(table.rows) > MOST else []
    return replace(table, rows=table.rows[:MOST], notes=more + table.notes)


def _folded(texts: Iterable[tuple[str, str]]) -> list[Part]:
    return [Folded(heading, [Code(text)]) for heading, text in texts]


def _cases(outcome: Outcome) -> list[Part]:
    if outcome.benchmarks is None or not outcome.benchmarks.cases:
        return []
    return [Folded("Each benchmark in full", [cases.table(case) for case in outcome.benchmarks.cases])]


def _packages(outcome: Outcome) -> Iterator[tuple[str, str]]:
    for variant in outcome.variants:
        versions = variant.environment.versions().items()
        yield f"Installed releases: {variant.name}", "\n".join(f"{name}=={version}" for name, version in versions)


def _candidate(outcome: Outcome) -> list[tuple[str, str]]:
    candidate = outcome.candidate
    if candidate is None or candidate.kind != "diff":
        return []
    return [(f"The diff: {candidate.text}", candidate.path.read_text(errors="replace"))]
