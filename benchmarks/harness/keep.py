"""Keep summaries of results: ``python -m benchmarks.harness.keep RESULT… [--into DIRECTORY]``.

Each raw result becomes a run of a file of ``doc/source/results``, which is that of its suite; a run of the same name is
replaced. Raw results are for those who have made them.
"""

import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from benchmarks.harness import gains, results, statistics, summaries, tables
from benchmarks.harness.machine import STABLE
from benchmarks.harness.results import ROOT, CaseResult, Result, ResultError, VariantResult
from benchmarks.harness.suites import Suite
from benchmarks.harness.summaries import Summary, SummaryCase, SummaryRow
from fastio import terminal
from fastio.arguments import Parser
from fastio.tables import Table

KEPT = ROOT / "doc" / "source" / "results"
#: Figures of runs whose ends plots show.
PLOTTED = ("operations_per_second", "whole_p99_ms")
#: Figures of a client's runs that sentences quote.
CLIENTS = ("cpu_seconds", "transfer_cpu_seconds")
#: Suites whose own tables say all, so that none of their cases is kept.
TABLES_ONLY = ("never_slower", "validate")
#: Parameters of rows that plots name.
PARAMETERS = ("size", "workers", "reads")


def summary(result: Result, judged: Sequence[Table] | None = None) -> Summary:
    """The summary of a raw result.

    :param judged: its findings, if its suite has none
    """
    return Summary(
        suite=result.suite,
        machine={key: result.machine.get(key) for key in STABLE},
        packages=result.packages,
        command=_command(result.command),
        started=result.started,
        finished=result.finished,
        cases=[] if result.suite.split()[0] in TABLES_ONLY else [_case(case) for case in result.cases],
        chosen=result.settings(),
        judged=list(Suite(result.suite).judgement(result) if judged is None else judged),
    )


def _command(arguments: Sequence[str]) -> list[str]:
    """A command as others can run it: without what is of this machine only."""
    program, *rest = (each.replace(f"{ROOT}/", "") for each in arguments)
    if "--result" in rest:
        at = rest.index("--result")
        del rest[at : at + 2]
    return [*(["python", "-m", "pytest"] if "pytest" in Path(program).parts else [program]), *rest]


def _case(case: CaseResult) -> SummaryCase:
    same: dict[str, Any] = {each.name: getattr(case, each.name) for each in fields(case)}
    same["parameters"] = {
        name: each.replace(f"{ROOT}/", "") if isinstance(each, str) else each for name, each in case.parameters.items()
    }
    same["variants"] = {title: _row(case, title, row) for title, row in case.variants.items()}
    # The servers of single rows are in the names of these.
    same["backend"] = {name: value for name, value in case.backend.items() if name not in case.variants}
    same["summary"] = {}
    return SummaryCase(**same)


def _row(case: CaseResult, title: str, row: VariantResult) -> SummaryRow:
    parameters = {name: row.parameters[name] for name in PARAMETERS if name in row.parameters}
    made = SummaryRow(title, [], parameters, row.rounds, row.usual_rounds, row.against, row.skipped)
    made.failure = {"reason": row.failure["reason"], "stderr": ""} if row.failure else None
    made.notes = tables.notes_of(case, title, row)
    made.wrong = bool(row.runs) and not row.verified()
    resource = (row.details.get("shares") or {}).get("resource")
    if resource and case.workload == "workload_matrix":
        made.details = {"shares": {"resource": resource}}
    made.count = case.rounds(title)
    if not made.count:
        return made
    made.spread = list(case.spread(title))
    made.others = {name: [value] * 3 for name, value in row.costs().items()}
    of_runs = [each for each in PLOTTED if each in row.measured()[0]]
    of_clients = CLIENTS if any(case.figures(each, CLIENTS[1]) for each in case.variants) else ()
    for key in dict.fromkeys([*case.columns, "p99_ms", *of_clients, *of_runs]):
        found = case.figures(title, key)
        if len(found) == made.count:
            ends = min(found), statistics.median(found), max(found)
            made.others[key] = list(map(float, ends if key in of_runs else ends[1:2] * 3))
    pairs = [*gains.gains(case), *gains.compared(case)]
    against = [case.against(title), *(each.against for each in pairs if each.title == title)]
    for key in ("", "p99_ms"):
        found_times = {other: case.better(title, other, key) for other in dict.fromkeys(against) if other != title}
        if times := {other: list(each) for other, each in found_times.items() if each}:
            made.times[key] = times
    return made


def runs(directory: Path = KEPT) -> dict[str, Summary]:
    """All runs that are kept, by name.

    :raises ResultError: if two files have one of the same name
    """
    return {name: run for path in sorted(directory.glob("*.json")) for name, run in summaries.read(path).items()}


def add(name: str, run: Summary, file: str, directory: Path = KEPT) -> None:
    """Add a run to a file, in place of one of the same name."""
    path = directory / f"{file}.json"
    known = summaries.read(path) if path.exists() else {}
    summaries.write(path, dict(sorted({**known, name: run}.items())))


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m benchmarks.harness.keep", description="Keep summaries of results.")
    parser.add_argument("results", metavar="RESULT", nargs="+", type=Path, help="a raw JSON result of any suite")
    parser.add_argument(
        "--into", type=Path, default=KEPT, metavar="DIRECTORY", help="where they are kept (%(default)s)"
    )
    chosen = parser.parse_args(arguments)
    try:
        for path in chosen.results:
            result = results.read(path)
            add(path.stem, summary(result), result.suite.split()[0], chosen.into)
    except (OSError, ResultError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
