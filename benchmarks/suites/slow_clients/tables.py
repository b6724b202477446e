"""The goals of fastio with slow clients: how long other requests wait, and that the clients get their rate.

fastio has no goal with slow uploads, about which it does nothing. The table of these compares what else there is.
"""

from collections.abc import Iterator

from benchmarks.harness.goals import Goal, goal_table
from benchmarks.harness.results import Result
from benchmarks.suites.slow_clients.bench_slow_clients import KINDS, LOADS, UPLOADS, WAYS, name
from fastio.tables import Table, number

#: Clients at a time -> milliseconds that 99 % of the other requests may take.
P99 = {4: 50.0, 200: 150.0}
#: The part of the rate that they ask for which the clients are to get, all together.
RATE = 0.95


def judgement(result: Result) -> list[Table]:
    goals, uploads = [*_goals(result)], _uploads(result)
    return [*([goal_table("Goals", goals)] if goals else []), *([uploads] if uploads.rows else [])]


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


def _uploads(result: Result) -> Table:
    """What other requests wait for, by what is done about slow uploads, and what that costs."""
    head = ["", "uploads", "p99 ms of other requests", "temporary files, MB", "server CPU s/GiB", "uploads, MB/s"]
    made = Table(f"{UPLOADS} slow uploads, and what can be done about them", head, [])
    cases = {case.name: case for case in result.cases}
    for kind, chunked in KINDS.items():
        case = cases.get(name(UPLOADS, kind))
        if case is None:
            continue
        for way in WAYS:
            costs = case.variants[way].costs() if way in case.variants else {}
            made.rows.append([
                way, "chunked" if chunked else "with Content-Length", number(case.median(way, "p99_ms")),
                number(case.median(way, "temporary_mb")), number(costs.get("server_cpu_seconds_per_gib")),
                number(case.median(way)),
            ])  # fmt: skip
    return made
