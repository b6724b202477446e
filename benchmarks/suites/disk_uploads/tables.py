"""The goals of uploads: their rate, and their processor time beside stock's and beside that of their parts."""

from collections.abc import Iterator

from benchmarks.harness.goals import Goal, goal_ratio, goal_table
from benchmarks.harness.results import CaseResult, Result
from benchmarks.suites.disk_uploads.bench_disk_uploads import CHUNKED, HASHES, PARTS, PLACES, SERVERS
from fastio.tables import Table

#: Whether the store is on a disk -> times stock's rate.
TIMES = {True: 1.6, False: 1.8}
#: Of stock's processor time, and of that of an upload's parts.
CPU, CPU_OF_PARTS = 1.0, 1.15
#: Of the rate of the slower hash.
HASH = 1.0


def judgement(result: Result) -> list[Table]:
    return [goal_table("Goals", _goals(result))]


def _goals(result: Result) -> Iterator[Goal]:
    for case in result.cases:
        place = case.name.rpartition("-")[2]
        for more in ("", CHUNKED):
            stock, fast = (f"{server}{more}" for server in SERVERS)
            name = f"{case.name}{more}"
            yield goal_ratio(f"{name}, MB/s", case.median(stock), case.median(fast), "≥", TIMES[PLACES[place]])
            yield goal_ratio(f"{name}, server CPU s", _cpu(case, stock), _cpu(case, fast), "≤", CPU)
        parts = _cpu(case, PARTS)
        yield goal_ratio(
            f"{case.name}, server CPU s, the parts for stock", parts, _cpu(case, "fastio"), "≤", CPU_OF_PARTS, "x parts"
        )
        slower = min((rate for rate in map(case.median, HASHES) if rate is not None), default=None)
        yield goal_ratio(
            f"{case.name}, MB/s, the slower hash for stock", slower, case.median("fastio"), "≥", HASH, "x hash"
        )


def _cpu(case: CaseResult, title: str) -> float | None:
    return case.median(title, "server_cpu_seconds")
