"""The goals of uploads: figures are medians of the same interleaved run."""

from collections.abc import Iterator

from benchmarks.harness.goals import Goal, goal_ratio, goal_table
from benchmarks.harness.results import Result
from fastio.tables import Table

#: Shares of stock's time and CPU time that a file may take.
TIME, CPU = 0.333, 0.4


def judgement(result: Result) -> list[Table]:
    return [goal_table("Goals", _goals(result))]


def _goals(result: Result) -> Iterator[Goal]:
    case = next((case for case in result.cases if case.name == "file"), None)
    if case is None:
        return
    for mode in ("native", "eventlet"):
        for what, column, most in (("seconds", "seconds", TIME), ("CPU s", "cpu_seconds", CPU)):
            stock, fast = (case.median(f"{mode}-{each}", column) for each in ("stock", "fastio"))
            yield goal_ratio(f"requests.put() of a file, {mode}, {what}", stock, fast, "≤", most)
