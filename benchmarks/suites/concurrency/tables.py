"""The tables of glance-api under many requests at a time: speed and success, states, saturation, and the goals."""

from collections.abc import Iterator
from typing import Any

from benchmarks.harness import statistics
from benchmarks.harness import tables as plain
from benchmarks.harness.goals import Goal, goal_ratio, goal_table
from benchmarks.harness.results import GIB, CaseResult, Result, VariantResult
from benchmarks.harness.tables import EMPTY, Table, number
from benchmarks.suites.concurrency.bench_concurrency import LEVELS, SERVERS, SERVICES, traced
from benchmarks.suites.concurrency.offered import rates
from benchmarks.suites.glance.bench_glance import SHIPPED

#: Requests/s that fastio is to have of stock's, from how many requests at a time on; as it is shipped.
FASTER, MANY = 1.3, 100
FASTER_AS_SHIPPED = 1.4
#: Load at the limit that fastio is to carry of stock's, with glance.
CARRIED = 1.3
#: The part of the most requests/s of all levels from which a service is saturated.
FULL = 0.95


HEAD = (
    "", "row", "MiB/s", "x stock (95 %)", "server CPU s/GiB", "x stock's CPU (95 %)", "machine CPU s/GiB", "limit",
    "evidence",
)  # fmt: skip


def judgement(result: Result) -> list[Table]:
    links = [
        _link(case, title, row) for case in result.cases if "rate" in case.parameters for title, row in _shown(case)
    ]
    return [
        overview(result), states(result), saturation(result), goals(result), offered(result), curves(result),
        goal_table("Goals", _offered_goals(result)), Table("What limits the load over a network", list(HEAD), links),
    ]  # fmt: skip


def levels(result: Result) -> Iterator[tuple[str, int, CaseResult]]:
    """Service, requests at a time, and what was measured."""
    known = {f"{service}-{users}": (service, users) for service in SERVICES for users in LEVELS}
    for case in result.cases:
        if case.name in known:
            yield *known[case.name], case


def overview(result: Result) -> Table:
    """Requests/s, success and times."""
    head = ["", "at a time", "stock req/s", "fastio req/s", "x stock (95 %)", "success stock", "fastio",
            "p50 s stock", "fastio", "p99 s stock", "fastio", "bottleneck stock", "fastio"]  # fmt: skip
    made = Table("Downloads of 16 MiB", head, [])
    for service, users, case in levels(result):
        if not any(map(case.figures, SERVERS)):
            continue
        row = [service, str(users)]
        row += [number(case.median(server, "operations_per_second")) for server in SERVERS]
        row.append(plain.ratio(case, "fastio") if all(map(case.figures, SERVERS)) else EMPTY)
        row += [_share(case.median(server, "success_ratio")) for server in SERVERS]
        for name in ("whole_p50_ms", "whole_p99_ms"):
            row += [_seconds(case.median(server, name)) for server in SERVERS]
        row += [_bottleneck(case, server) for server in SERVERS]
        made.rows.append(row)
    return made


def _share(value: float | None) -> str:
    return EMPTY if value is None else f"{value:.2%}"


def _seconds(milliseconds: float | None) -> str:
    return EMPTY if milliseconds is None else number(milliseconds / 1000)


def _bottleneck(case: CaseResult, server: str) -> str:
    details = case.variants[server].details if server in case.variants else {}
    shares = details.get("shares") or {}
    return str(shares.get("resource", EMPTY))


def states(result: Result) -> Table:
    """What the requests of the traced servers spent in each state, as the server saw it."""
    head = ["", "at a time", "state", "stock p50 ms", "fastio p50 ms", "stock p99 ms", "fastio p99 ms"]
    made = Table("Where the time goes", head, [])
    for service, users, case in levels(result):
        found = {server: _trace(case, server) for server in SERVERS}
        names = dict.fromkeys(state for each in found.values() for state in each.get("states", {}))
        for state in names:
            row = [service, str(users), state]
            for part in ("p50_ms", "p99_ms"):
                row += [number(found[server].get("states", {}).get(state, {}).get(part)) for server in SERVERS]
            made.rows.append(row)
        made.notes += [
            f"{service}, {users}, {server}: {each['lost']} spans of the trace were lost"
            for server, each in found.items()
            if each.get("lost")
        ]
    return made


def _trace(case: CaseResult, server: str) -> dict[str, Any]:
    title = traced(server)
    return case.variants[title].details.get("trace", {}) if title in case.variants else {}


def _most(result: Result, service: str, server: str) -> tuple[int, float] | None:
    """With how many requests at a time it is saturated, and its most requests/s."""
    found = {}
    for own, users, case in levels(result):
        value = case.median(server, "operations_per_second")
        if own == service and value is not None:
            found[users] = value
    if not found:
        return None
    most = max(found.values())
    return min(users for users, value in found.items() if value >= FULL * most), most


def saturation(result: Result) -> Table:
    """From how many requests at a time on a service gets no faster, and on what."""
    made = Table("Saturation", ["", "", "at a time", "req/s", "what is used up"], [])
    for service in SERVICES:
        for server in SERVERS:
            found = _most(result, service, server)
            if found is None:
                continue
            users, most = found
            case = next(each for own, count, each in levels(result) if (own, count) == (service, users))
            words = (case.variants[server].measured() or [{}])[-1].get("bottleneck", EMPTY)
            made.rows.append([service, server, str(users), number(most), words])
    return made


def goals(result: Result) -> Table:
    return goal_table("Goals", _goals(result))


def _goals(result: Result) -> Iterator[Goal]:
    for service, users, case in levels(result):
        if not all(map(case.figures, SERVERS)):
            continue
        what = f"{service}, {users} at a time"
        if users >= MANY:
            reached = statistics.ratio(case.figures("fastio"), case.figures("stock"), case.seed).ratio
            stock, fast = (case.median(server, "operations_per_second") for server in SERVERS)
            faster = FASTER_AS_SHIPPED if service == SHIPPED else FASTER
            yield Goal(f"{what}: req/s", stock, fast, reached, "≥", faster, "x stock")
        if service == SHIPPED:
            stock, fast = (case.median(server, "whole_p99_ms") for server in SERVERS)
            yield goal_ratio(f"{what}: p99 ms", stock, fast, "≤", 1)
        stock, fast = (case.median(server, "success_ratio") for server in SERVERS)
        if stock is not None and fast is not None:
            yield Goal(f"{what}: success", stock, fast, fast - stock, "≥", 0, "more")
    for service in SERVICES:
        before, after = (_most(result, service, server) for server in SERVERS)
        if before is not None and after is not None:
            yield goal_ratio(f"{service}: req/s where it is saturated", before[1], after[1], "≥", 1)


def searches(result: Result) -> Iterator[CaseResult]:
    """The cases of an offered load."""
    for case in result.cases:
        if "kind" in case.parameters and all(map(case.figures, SERVERS)):
            yield case


def offered(result: Result) -> Table:
    """Where the limit is."""
    head = ["", "limit, ms", "stock downloads/s", "fastio", "stock MiB/s", "fastio", "x stock (95 %)"]
    made = Table("Offered load at which the 99th percentile passes the limit", head, [])
    for case in searches(result):
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
    for case in searches(result):
        found = {server: dict(points(case, server)) for server in SERVERS}
        for rate in sorted({rate for each in found.values() for rate in each}):
            cells = [statistics.median(found[server][rate]) if rate in found[server] else None for server in SERVERS]
            made.rows.append([case.name, number(rate), *(EMPTY if each is None else number(each) for each in cells)])
    made.notes.append("medians of the rounds that got there; a search ends at the first rate above the limit")
    return made


def _offered_goals(result: Result) -> Iterator[Goal]:
    for case in searches(result):
        if case.parameters["kind"] != "glance":
            continue
        stock, fast = (case.median(server, "operations_per_second") for server in SERVERS)
        ratio = statistics.ratio(case.figures("fastio"), case.figures("stock"), case.seed).ratio
        yield Goal(f"{case.name}: downloads/s at the limit", stock, fast, ratio, "≥", CARRIED, "x stock")


def _shown(case: CaseResult) -> Iterator[tuple[str, VariantResult]]:
    for title, row in case.variants.items():
        if row.skipped or row.measured():
            yield title, row


def _link(case: CaseResult, title: str, row: VariantResult) -> list[str]:
    if row.skipped:
        return [case.name, title, *[EMPTY] * 5, "not measured", row.skipped]
    found = row.details["shares"]
    own, everybody = (_cost(row, key) for key in ("server_cpu_seconds", "machine_cpu_seconds"))
    return [
        case.name, title, number(case.median(title)), plain.ratio(case, title), number(own), _cpu_times(case, title),
        number(everybody), found["resource"], found["text"],
    ]  # fmt: skip


def _cost(row: VariantResult, key: str) -> float | None:
    """Seconds for a GiB."""
    moved, spent = row.median("bytes"), row.median(key)
    return spent / moved * GIB if moved and spent is not None else None


def _cpu_times(case: CaseResult, title: str) -> str:
    """How many times the CPU time of stock's server it takes."""
    if case.against(title) == title:
        return "1"
    own, stock = (
        [run["server_cpu_seconds"] / run["bytes"] for run in case.variants[each].measured()]
        for each in (title, case.against(title))
    )
    return str(statistics.ratio(own, stock, case.seed)) if stock else EMPTY
