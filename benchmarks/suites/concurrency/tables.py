"""The tables of glance-api under many concurrent requests: speed and success, states, saturation, and the limits."""

from typing import Any

from benchmarks.harness import statistics
from benchmarks.harness import tables as plain
from benchmarks.harness.results import CaseResult, Result, VariantResult
from benchmarks.harness.tables import EMPTY, Table, number
from benchmarks.suites.concurrency.bench_concurrency import SERVERS, SERVICES, levels, most_of, traced
from benchmarks.suites.concurrency.offered import rates

HEAD = (
    "", "row", "MiB/s", "x stock (95 %)", "server CPU s/GiB", "x stock's CPU (95 %)", "machine CPU s/GiB", "limit",
    "evidence",
)  # fmt: skip


def judgement(result: Result) -> list[Table]:
    links = [
        _link(case, title, row)
        for case in result.cases if "rate" in case.parameters
        for title, row in case.variants.items() if row.measured()
    ]  # fmt: skip
    limits = Table("Limits of the load over a network", list(HEAD), links)
    return [overview(result), states(result), saturation(result), curves(result), limits]


def overview(result: Result) -> Table:
    """Requests/s, success and times."""
    head = ["", "concurrent", "stock req/s", "fastio req/s", "x stock (95 %)", "success stock", "fastio",
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
    """Return the times that requests of the traced servers spent in each state, in the server's view."""
    head = ["", "concurrent", "state", "stock p50 ms", "fastio p50 ms", "stock p99 ms", "fastio p99 ms"]
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


def saturation(result: Result) -> Table:
    """Return the number of concurrent requests from which on a service gets no faster, and why."""
    made = Table("Saturation", ["", "", "concurrent", "req/s", "used up"], [])
    for service in SERVICES:
        for server in SERVERS:
            found = most_of(result, service, server)
            if found is None:
                continue
            users, most = found
            case = next(each for own, count, each in levels(result) if (own, count) == (service, users))
            words = (case.variants[server].measured() or [{}])[-1].get("bottleneck", EMPTY)
            made.rows.append([service, server, str(users), number(most), words])
    return made


def curves(result: Result) -> Table:
    """The times on the way to the offered load of the limit."""
    made = Table("99th percentile by offered load", ["", "downloads/s", "stock p99 ms", "fastio p99 ms"], [])
    for case in (case for case in result.cases if "kind" in case.parameters):
        for position, rate in enumerate(rates(case.parameters)):
            found = [case.figures(server, f"p99_ms_{position}") for server in SERVERS]
            if any(found):
                cells = (number(statistics.median(each)) if each else EMPTY for each in found)
                made.rows.append([case.name, number(rate), *cells])
    made.notes.append("medians of the rounds that got there; a search ends at the first rate above the limit")
    return made


def _link(case: CaseResult, title: str, row: VariantResult) -> list[str]:
    found = row.details["shares"]
    own, everybody = (number(row.median(f"{whose}_cpu_seconds_per_gib")) for whose in ("server", "machine"))
    return [
        case.name, title, number(case.median(title)), plain.ratio(case, title), own, _cpu_times(case, title),
        everybody, found["resource"], found["text"],
    ]  # fmt: skip


def _cpu_times(case: CaseResult, title: str) -> str:
    """How many times the CPU time of stock's server it takes."""
    if case.against(title) == title:
        return "1"
    own, stock = (
        [run["server_cpu_seconds"] / run["bytes"] for run in case.variants[each].measured()]
        for each in (title, case.against(title))
    )
    return str(statistics.ratio(own, stock, case.seed)) if stock else EMPTY
