"""The goals of imports: the time and the processor's time that fastio may take of stock's."""

from collections.abc import Iterator

from benchmarks.harness.goals import Goal, goal_ratio, goal_table
from benchmarks.harness.results import Result
from benchmarks.suites.imports.bench_imports import SERVERS
from fastio.tables import Table

#: Of stock's.
SECONDS, CPU = 0.5, 0.4


def judgement(result: Result) -> list[Table]:
    return [goal_table("Goals", _goals(result))]


def _goals(result: Result) -> Iterator[Goal]:
    for case in result.cases:
        stock, fast = (case.median(server) for server in SERVERS)
        yield goal_ratio(f"{case.name}, s", stock, fast, "≤", SECONDS)
        stock, fast = (case.median(server, "server_cpu_seconds") for server in SERVERS)
        yield goal_ratio(f"{case.name}, server CPU s", stock, fast, "≤", CPU)
