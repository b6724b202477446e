"""The tables of the offered load: where the limit is, the times on the way to it, and the goals."""

from collections.abc import Iterator

from benchmarks.harness import statistics
from benchmarks.harness import tables as plain
from benchmarks.harness.goals import Goal, goal_table
from benchmarks.harness.results import CaseResult, Result
from benchmarks.harness.tables import EMPTY, Table, number
from benchmarks.suites.offered_load.bench_offered_load import SERVERS
from benchmarks.suites.offered_load.workload import rates

#: Load that fastio is to carry of stock's, with glance.
CARRIED = 1.3


def judgement(result: Result) -> list[Table]:
    return [overview(result), curves(result), goals(result)]


def overview(result: Result) -> Table:
    """Where the limit is."""
    head = ["", "limit, ms", "stock downloads/s", "fastio", "stock MiB/s", "fastio", "x stock (95 %)"]
    made = Table("Offered load at which the 99th percentile passes the limit", head, [])
    for case in result.cases:
        if not all(map(case.figures, SERVERS)):
            continue
        row = [case.name, number(case.parameters["limit"])]
        row += [number(case.median(server, "operations_per_second")) for server in SERVERS]
        row += [number(case.median(server)) for server in SERVERS]
        made.rows.append([*row, plain.ratio(case, "fastio")])
    return made


def points(case: CaseResult, server: str) -> Iterator[tuple[float, list[float]]]:
    """Each rate in downloads a second, and its 99th percentiles in milliseconds, of the rounds that got there."""
    for position, rate in enumerate(rates(case.parameters)):
        found = case.figures(server, f"p99_ms_{position}")
        if found:
            yield rate, found


def curves(result: Result) -> Table:
    """The times on the way there."""
    made = Table("99th percentile by offered load", ["", "downloads/s", "stock p99 ms", "fastio p99 ms"], [])
    for case in result.cases:
        found = {server: dict(points(case, server)) for server in SERVERS}
        for rate in sorted({rate for each in found.values() for rate in each}):
            cells = [statistics.median(found[server][rate]) if rate in found[server] else None for server in SERVERS]
            made.rows.append([case.name, number(rate), *(EMPTY if each is None else number(each) for each in cells)])
    made.notes.append("medians of the rounds that got there; a search ends at the first rate above the limit")
    return made


def goals(result: Result) -> Table:
    return goal_table("Goals", _goals(result))


def _goals(result: Result) -> Iterator[Goal]:
    for case in result.cases:
        if case.parameters["kind"] != "glance" or not all(map(case.figures, SERVERS)):
            continue
        stock, fast = (case.median(server, "operations_per_second") for server in SERVERS)
        ratio = statistics.ratio(case.figures("fastio"), case.figures("stock"), case.seed).ratio
        yield Goal(f"{case.name}: downloads/s at the limit", stock, fast, ratio, "≥", CARRIED, "x stock")
