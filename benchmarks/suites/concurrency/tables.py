"""The tables of glance-api under many requests at a time: speed and success, states, saturation, and the goals."""

from collections.abc import Iterator
from typing import Any

from benchmarks.harness import statistics
from benchmarks.harness import tables as plain
from benchmarks.harness.goals import Goal, goal_ratio, goal_table
from benchmarks.harness.results import CaseResult, Result
from benchmarks.harness.tables import EMPTY, Table, number
from benchmarks.suites.concurrency.bench_concurrency import LEVELS, SERVICES, traced
from benchmarks.suites.glance.bench_glance import SHIPPED

#: Requests/s that fastio is to have of stock's, from how many requests at a time on; as it is shipped.
FASTER, MANY = 1.3, 100
FASTER_AS_SHIPPED = 1.4
#: The part of the most requests/s of all levels from which a service is saturated.
FULL = 0.95
SERVERS = ("stock", "fastio")


def judgement(result: Result) -> list[Table]:
    return [overview(result), states(result), saturation(result), goals(result)]


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
