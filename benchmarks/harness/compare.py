"""Compare two results: ``python -m benchmarks.harness.compare BEFORE.json AFTER.json``.

For each row of each case, the table has the ratio of the medians with its bootstrap interval, the p-value of a rank
test, and whether the row became faster or slower or it is noise. Then come the differences beside the figures
(parameters, machine, versions, fastio's settings), which explain more of them than the code does.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import results, statistics
from benchmarks.harness.machine import STABLE
from benchmarks.harness.results import CaseResult, Result
from benchmarks.harness.tables import BUSY, number
from fastio import terminal
from fastio.arguments import Parser
from fastio.tables import Table

FASTER, SLOWER, NOISE = "faster", "slower", "noise"

#: A difference is called one when chance would make it, or a larger one, less often than this.
ALPHA = 0.01


@dataclass
class Row:
    """One variant of one case in both results."""

    case: str
    title: str
    unit: str
    before: float
    after: float
    #: how many times better the second is, more than 1 is better
    better: statistics.Interval
    p: float
    verdict: str


@dataclass
class Comparison:
    """Everything that :func:`compare` found."""

    #: differences beside the figures, one line each
    differences: list[str]
    rows: list[Row]
    #: rows that could not be compared, and why
    left_out: list[str]


def compare(before: Result, after: Result) -> Comparison:
    """Compare ``after`` with ``before``."""
    differences = differing("suite", {"": before.suite}, {"": after.suite})
    machines = ({key: result.machine.get(key) for key in STABLE} for result in (before, after))
    differences += differing("machine", *machines)
    differences += differing("package", before.packages, after.packages)
    rows: list[Row] = []
    left_out: list[str] = []
    old, new = ({case.name: case for case in result.cases} for result in (before, after))
    for name, first, second in _pairs(old, new, "case", left_out):
        around = (_circumstances(*each) for each in ((first, second.variants), (second, first.variants)))
        differences += differing(f"case {name}:", *around)
        loads = first.load_before, second.load_before
        if max(loads) > BUSY * (before.machine.get("usable_threads") or 1):
            differences.append(f"case {name}: load average before it: {loads[0]:g} -> {loads[1]:g}")
        if (first.unit, first.value) != (second.unit, second.value):
            left_out.append(f"case {name}: {first.value} in {first.unit} and {second.value} in {second.unit}")
            continue
        for title, *_ in _pairs(first.variants, second.variants, f"case {name}: row", left_out):
            figures = first.figures(title), second.figures(title)
            without = [each for each, found in zip(("first", "second"), figures, strict=True) if not found]
            if without:
                left_out.append(f"case {name}: row {title}: no figures in the {' and the '.join(without)} result")
            elif not all(map(all, figures)):
                middles = (number(statistics.median(found)) for found in figures)
                left_out.append(f"case {name}: row {title}: a figure is 0; the medians are {' and '.join(middles)}")
            else:
                rows.append(judge(first, title, *figures))
    return Comparison(differences, rows, left_out)


def judge(case: CaseResult, title: str, before: list[float], after: list[float]) -> Row:
    """The comparison of two sets of figures of a case."""
    better = statistics.ratio(*((after, before) if case.more_is_better else (before, after)), seed=case.seed)
    p = statistics.rank_test(before, after)
    if statistics.smallest_p(len(before), len(after)) >= ALPHA:
        verdict = f"{NOISE} (too few rounds to tell)"
    elif p >= ALPHA or better.low <= 1 <= better.high:
        verdict = NOISE
    else:
        verdict = FASTER if better.ratio > 1 else SLOWER
    return Row(
        case.name, title, case.unit, statistics.median(before), statistics.median(after), better, p, verdict
    )  # fmt: skip


def _pairs(
    first: Mapping[str, Any], second: Mapping[str, Any], kind: str, left_out: list[str]
) -> Iterator[tuple[str, Any, Any]]:
    """The names that both have, each with what it stands for in both; the others are noted in ``left_out``."""
    for name in {**first, **second}:
        if name in first and name in second:
            yield name, first[name], second[name]
        else:
            left_out.append(f"{kind} {name}: only in the {'first' if name in first else 'second'} result")


def _circumstances(case: CaseResult, rows: Mapping[str, Any]) -> dict[str, Any]:
    """Return the conditions of these rows' figures beside the code, by name."""
    found: dict[str, Any] = {"workload": case.workload}
    found |= {f"parameter {name}": value for name, value in case.parameters.items()}
    found |= {f"backend {name}": value for name, value in case.backend.items()}
    for title in (title for title in case.variants if title in rows):
        row = case.variants[title]
        own = {
            name: value
            for name, value in row.parameters.items()
            if name not in case.parameters or case.parameters[name] != value
        }
        status = row.details.get("fastio", {})
        settings = {name: each["value"] for name, each in status.get("settings", {}).items()}
        outcomes = {f"{each['name']} ({each['target']})": each["outcome"] for each in status.get("patches", [])}
        touched = {name: outcome for name, outcome in outcomes.items() if outcome not in results.UNTOUCHED}
        found[f"row {title}: python"] = row.details.get("python")
        found |= {f"row {title}: parameter {name}": value for name, value in own.items()}
        found |= {f"row {title}: fastio {name}": value for name, value in {**settings, **touched}.items()}
    return found


def differing(what: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """A line for each key that does not have the same value in both."""
    found = []
    for key in {**first, **second}:
        if first.get(key) != second.get(key):
            found.append(f"{what} {key}".rstrip() + f": {_show(first, key)} -> {_show(second, key)}")
    return found


def _show(values: Mapping[str, Any], key: str) -> str:
    return str(values[key]) if key in values else "(none)"


def table(comparison: Comparison) -> Table:
    """A line for each row."""
    made = Table("", ["case", "row", "before", "after", "times better (95 %)", "p", "verdict"], [])
    for row in comparison.rows:
        figures = (f"{number(figure)} {row.unit}" for figure in (row.before, row.after))
        made.rows.append([row.case, row.title, *figures, str(row.better), f"{row.p:.2g}", row.verdict])
    return made


def show(comparison: Comparison) -> None:
    """Print the table, the counts of its verdicts, and the differences."""
    if comparison.rows:
        terminal.show([table(comparison)])
    counts = {verdict: sum(row.verdict.startswith(verdict) for row in comparison.rows)
              for verdict in (FASTER, SLOWER, NOISE)}  # fmt: skip
    terminal.say(", ".join(f"{count} {verdict}" for verdict, count in counts.items()) + f" at p < {ALPHA:g}")
    for line in comparison.left_out:
        terminal.say("not compared: " + line, "  ")
    for line in comparison.differences:
        terminal.say("differs: " + line, "  ")
    if not comparison.differences:
        terminal.say("same machine, versions, parameters and settings")


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m benchmarks.harness.compare", description="Compare two benchmark results.")
    parser.add_argument("before", type=Path, metavar="BEFORE.json")
    parser.add_argument("after", type=Path, metavar="AFTER.json")
    chosen = parser.parse_args(arguments)
    try:
        before, after = results.read(chosen.before), results.read(chosen.after)
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except results.ResultError as error:
        print(error, file=sys.stderr)
        return 2
    show(compare(before, after))
    return 0


if __name__ == "__main__":
    sys.exit(main())
