"""The summary of a validation as markdown, for a comment on a review."""

from __future__ import annotations

import shlex

import fastio
from benchmarks.tools.upstream.report import Table
from fastio.page import markdown_table

from . import tables
from .outcome import Outcome

#: A comment that lists more is not read; the report has all of them.
MOST = 40


def summary(outcome: Outcome) -> str:
    lines = [f"## {tables.title(outcome)}: {tables.headline(outcome)}", ""]
    lines += [f"- {line}" for line in tables.verdicts(outcome)]
    lines += [f"- {failure.splitlines()[0]}" for failure in outcome.failures()[:MOST]]
    lines += [f"- and {len(outcome.failures()) - MOST} more"] if len(outcome.failures()) > MOST else []
    for heading, table in (
        ("What was compared", tables.variants(outcome)),
        ("Suites", tables.suites(outcome)),
        ("Tests whose outcome differs", tables.differences(outcome)),
        ("Benchmarks", tables.benchmarks(outcome)),
    ):
        lines += _section(heading, table)
    lines += ["", "\n\n".join([*tables.suite_notes(outcome), *tables.benchmark_notes(outcome)])]
    lines += ["", f"{tables.machine_line(outcome)}; fastio {fastio.__version__}", ""]
    lines += ["```", f"fastio validate {shlex.join(outcome.command)}", "```"]
    return "\n".join(lines) + "\n"


def _section(heading: str, table: Table) -> list[str]:
    head, rows = table
    if not rows:
        return []
    more = [f"… and {len(rows) - MOST} more, in the report"] if len(rows) > MOST else []
    return ["", f"### {heading}", "", *markdown_table(head, rows[:MOST]), *more]
