"""Print results with what their suites say of them: ``python -m benchmarks.harness.tables RESULT…``."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import markup, results, statistics
from benchmarks.harness.results import COSTS, CaseResult, Result, VariantResult
from benchmarks.harness.summaries import SummaryRow
from fastio import terminal
from fastio.arguments import Parser
from fastio.config import format_size
from fastio.tables import EMPTY, Table, number

#: More combinations of fastio's settings than this are a sweep: the rows tell them.
FEW_SETTINGS = 3
#: Load average per processor, before the case, from which the figures are doubted: other processes are at work.
BUSY = 0.75


def table(case: CaseResult, machine: dict | None = None) -> Table:
    """The table of a case, with what makes its figures doubtful as notes."""
    costs = [cost for cost in COSTS if any(cost[0] in variant.costs() for variant in case.variants.values())]
    head = ["", case.unit, "±"]
    compared = [case.against(title) for title in case.variants]
    compared = [title for title in dict.fromkeys(compared) if case.figures(title)]
    if compared and len(case.variants) > 1:
        head.append("x " + " / ".join(compared))
    head += [heading for _, heading, _, _ in costs] + list(case.columns) + ["rounds"]
    made = Table(case.title or case.name, head, [], _case_notes(case, machine))
    notes: dict[str, list[str]] = {}
    for title, variant in case.variants.items():
        made.rows.append(_row(case, title, variant, len(head), bool(compared), [name for name, *_ in costs]))
        for note in notes_of(case, title, variant):
            notes.setdefault(note, []).append(title)
    made.notes += [f"{', '.join(titles)}: {note}" for note, titles in notes.items()]
    return made


def tables(result: Result) -> list[Table]:
    """Return the tables of all cases."""
    return [table(case, result.machine) for case in result.cases]


def _row(
    case: CaseResult, title: str, variant: VariantResult, width: int, compared: bool, costs: list[str]
) -> list[str]:
    if not case.rounds(title):
        reason = "skipped" if variant.skipped else "failed" if variant.failure else "not run"
        return [title, reason] + [EMPTY] * (width - 3) + ["0"]
    found = case.spread(title)
    row = [title, number(found.median), f"{found.deviation:.1%}" if found.median else EMPTY]
    if compared and len(case.variants) > 1:
        row.append(ratio(case, title))
    row += [number(variant.costs().get(cost)) for cost in costs]
    row += [number(variant.median(column)) for column in case.columns]
    return row + [str(case.rounds(title))]


def ratio(case: CaseResult, title: str) -> str:
    """How many times better than the row it is compared with, for people."""
    if title == case.against(title):
        return "1"
    interval = case.better(title)
    if interval is None:
        return EMPTY
    few = min(case.rounds(each) for each in (title, case.against(title))) < results.FEW_ROUNDS
    return number(interval.ratio) if few else str(interval)


def notes_of(case: CaseResult, title: str, variant: VariantResult) -> list[str]:
    """Return the reasons why the figures of a row are doubtful."""
    if isinstance(variant, SummaryRow):
        return variant.notes
    notes = variant.troubles()
    figures = case.figures(title)
    own: Any = variant.parameters.get("size")
    usual: Any = case.parameters.get("size")
    if figures and own != usual:
        notes.append(f"with {format_size(own)}, where the others have {format_size(usual)}")
    notes += variant.details.get("doubts", [])
    share = max((run.get("generator_cpu", 0.0) for run in variant.measured()), default=0.0)
    if statistics.limited(share):
        notes.append(statistics.limit_note(share))
    if figures:
        seconds = [run["seconds"] for run in variant.measured()]
        notes += statistics.doubts(figures, variant.usual_rounds, seconds)
    return notes


def _case_notes(case: CaseResult, machine: dict | None) -> list[str]:
    notes = []
    if case.parameters:
        notes.append("parameters: " + ", ".join(f"{name} {_show(each)}" for name, each in case.parameters.items()))
    if case.backend:
        own = {name: each for name, each in case.backend.items() if name not in ("name", "directory")}
        settings = "".join(f", {name} {_show(each)}" for name, each in own.items())
        notes.append(f"backend: {case.backend['name']}, its files in {case.backend['directory']}{settings}")
    if not case.complete:
        notes.append("interrupted: not all runs were made")
    threads = (machine or {}).get("usable_threads") or 1
    if case.load_before / threads > BUSY:
        notes.append(
            f"load average {case.load_before:g} before the first run: the machine was busy with something else"
        )
    return notes


def _show(parameter: Any) -> str:
    """A parameter for people; large numbers are sizes."""
    large = isinstance(parameter, int) and parameter >= results.MIB
    return format_size(parameter) if large else str(parameter)


def hardware(machine: Mapping[str, Any]) -> str:
    """Processor, threads and memory of a machine; results from before the flag was recorded lack it."""
    flag = "" if machine.get("fsrm") is None else f" with{'' if machine['fsrm'] else 'out'} fsrm"
    processor = machine["processor"] + flag
    return f"{processor}, {machine['usable_threads']} threads, {machine['memory'] / results.GIB:.0f} GiB"


def summary(result: Result) -> list[str]:
    """Describe the conditions of the figures in a few lines."""
    machine = result.machine
    lines = [
        f"{hardware(machine)}; {machine['distribution']}, Linux {machine['kernel']}; Python {machine['python']}; "
        f"started {result.started}",
        ", ".join(f"{name} {version}" for name, version in result.packages.items()),
    ]
    settings = result.settings()
    if len(settings) > FEW_SETTINGS:
        settings = [f"{len(settings)} combinations, see the rows"]
    lines += ["fastio settings: " + each for each in settings]
    return [line for line in lines if line]


def rst(result: Result) -> str:
    return "\n\n".join([*(markup.rst(each) for each in tables(result)), *summary(result)]) + "\n"


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    from benchmarks.harness.suites import Suite

    parser = Parser(prog="python -m benchmarks.harness.tables", description="Print benchmark results.")
    parser.add_argument("results", metavar="RESULT", nargs="+", type=Path)
    chosen = parser.parse_args(arguments)
    try:
        given = [results.read(path) for path in chosen.results]
        shown = [[*tables(result), *Suite(result.suite).judgement(result)] for result in given]
    except (OSError, results.ResultError) as error:
        print(error, file=sys.stderr)
        return 2
    for result, made in zip(given, shown, strict=True):
        terminal.show(made, summary(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
