"""The report of a validation: one HTML file that needs no other."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Sequence
from html import escape
from pathlib import Path

import fastio
from benchmarks import tables as cases
from tests.upstream.report import Table

from . import tables
from .outcome import Outcome, PythonOutcome

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 90em; padding: 0 1.5em; color: #222; }
h1 { font-size: 1.5em; } h2 { font-size: 1.2em; margin-top: 2em; } h3 { font-size: 1em; }
table { border-collapse: collapse; font-size: 13px; margin: .7em 0; }
th, td { border: 1px solid #ddd; padding: .25em .6em; text-align: left; vertical-align: top; }
th { background: #f3f3f3; } tr.bad td { background: #fbe3e0; } tr.good td { background: #e2f3e8; }
tr.noise td { color: #888; }
pre { background: #f6f6f6; padding: .8em; overflow-x: auto; font-size: 12px; }
.verdict { font-size: 1.15em; padding: .5em .8em; border-radius: .3em; display: inline-block; }
.verdict.bad { background: #fbe3e0; } .verdict.good { background: #e2f3e8; }
img { max-width: 100%; } summary { cursor: pointer; margin: .4em 0; }
"""

#: Words of a cell that colour its row; the first that is found counts.
_CLASSES = (
    ("FAILED", "bad"), ("newly fails", "bad"), ("WRONG DATA", "bad"), ("slower", "bad"),
    ("faster", "good"), ("newly passes", "good"), ("noise", "noise"), ("flaky", "noise"),
)  # fmt: skip


def report(outcome: Outcome, plots: Sequence[Path]) -> str:
    """The page.

    :param plots: PNG files to show
    """
    failures = outcome.failures()
    title = f"{tables.title(outcome)}: {tables.headline(outcome)}"
    parts = [
        f"<h1>{escape(tables.title(outcome))}</h1>",
        f'<p class="verdict {"bad" if failures else "good"}">{escape(tables.headline(outcome))}</p>',
        _list([*tables.verdicts(outcome), *failures]),
        _section("What was compared", tables.variants(outcome)),
        _section("Suites", tables.suites(outcome)),
        _section("Tests whose outcome differs", tables.differences(outcome)),
        *(f"<p>{escape(note)}</p>" for note in tables.suite_notes(outcome)),
        _folded(list(tables.tracebacks(outcome))),
        _section("Benchmarks", tables.benchmarks(outcome)),
        *(f"<p>{escape(note)}</p>" for note in tables.benchmark_notes(outcome)),
        *map(_plot, plots),
        *(_cases(each) for each in outcome.pythons),
        "<h2>How this was made</h2>",
        f"<p>{escape(tables.machine_line(outcome))}; fastio {fastio.__version__}</p>",
        f"<pre>fastio validate {escape(shlex.join(outcome.command))}</pre>",
        _folded([*_packages(outcome), *_candidate(outcome)]),
        "<p>The raw data is in <code>raw.json</code> beside this file.</p>",
    ]
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n' + "\n".join(parts) + "\n</body></html>\n"


def _section(heading: str, table: Table) -> str:
    return f"<h2>{escape(heading)}</h2>{_table(table)}" if table[1] else ""


def _table(table: Table) -> str:
    head, rows = table
    lines = ["<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>"]
    for row in rows:
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
        lines.append(f"<tr{_class(row)}>{cells}</tr>")
    return "<table>" + "\n".join(lines) + "</table>"


def _class(row: Sequence[str]) -> str:
    found = next((name for word, name in _CLASSES if any(cell.startswith(word) for cell in row)), "")
    return f' class="{found}"' if found else ""


def _list(lines: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>" if lines else ""


def _folded(texts: Sequence[tuple[str, str]]) -> str:
    return "".join(
        f"<details><summary>{escape(heading)}</summary><pre>{escape(text)}</pre></details>" for heading, text in texts
    )


def _plot(path: Path) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    image = f'<img alt="{escape(path.stem)}" src="data:image/png;base64,{data}">'
    return f"<details><summary>Every run</summary>{image}</details>"


def _cases(each: PythonOutcome) -> str:
    if each.benchmarks is None or not each.benchmarks.cases:
        return ""
    shown = []
    for table in map(cases.table, each.benchmarks.cases):
        shown.append(f"<h3>{escape(table.title)}</h3>{_table((table.head, table.rows))}{_list(table.notes)}")
    heading = f"Each benchmark in full, Python {each.python.version}"
    return f"<details><summary>{escape(heading)}</summary>{''.join(shown)}</details>"


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
