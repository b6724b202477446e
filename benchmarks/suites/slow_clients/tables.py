"""The goals of fastio with slow clients: how long other requests wait, and that the clients get their rate."""

from collections.abc import Iterator

from benchmarks.harness.goals import Goal, goal_table
from benchmarks.harness.results import Result
from benchmarks.suites.slow_clients.bench_slow_clients import LOADS, name
from fastio.tables import Table

#: Clients at a time -> milliseconds that 99 % of the other requests may take.
P99 = {4: 50.0, 200: 150.0}
#: The part of the rate that they ask for which the clients are to get, all together.
RATE = 0.95


def judgement(result: Result) -> list[Table]:
    return [goal_table("Goals", _goals(result))]


def _goals(result: Result) -> Iterator[Goal]:
    cases = {case.name: case for case in result.cases}
    for clients, (rate, _) in LOADS.items():
        case = cases.get(name(clients))
        if case is None:
            continue
        stock, fast = (case.median(row, "p99_ms") for row in ("stock", "fastio"))
        what = f"other requests during {clients} slow downloads, p99 ms"
        yield Goal(what, stock, fast, fast, "≤", P99[clients], "ms")
        stock, fast = (case.median(row) for row in ("stock", "fastio"))
        reached = None if fast is None else fast * 1e6 / (clients * rate)
        yield Goal(f"{clients} slow downloads, MB/s", stock, fast, reached, "≥", RATE, "of what they ask for")
