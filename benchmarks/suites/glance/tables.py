"""The goals of fastio in the service: figures are medians, or ratios of two medians of the same interleaved run."""

from collections.abc import Iterator

from benchmarks.harness.goals import Goal, goal_ratio, goal_table
from benchmarks.harness.results import CaseResult, Result
from benchmarks.suites.glance.bench_glance import (
    APART,
    CLIENTS_AT_ONCE,
    KINDS,
    LOADS,
    SERVICES,
    SHIPPED,
    SLOW_UPLOADS,
    WAYS,
    WITH_SENDFILE,
    slow_name,
    title,
)
from fastio.tables import Table, number

#: Service -> times stock's throughput that a download has to reach, and the share of stock's CPU time it may take.
DOWNLOADS = {SHIPPED: (1.4, 0.7), "glance-32": (1.9, 0.5), "glance-33": (1.4, 0.7)}
#: Service -> times the throughput of stock that an upload has to reach.
UPLOADS = {SHIPPED: 1.8, "glance-32": 1.8, "glance-33": 2.2}
#: Downloads at a time -> milliseconds that half of the other requests may take.
P50_DOWNLOADS = {1: 15.0, 5: 20.0, 20: 40.0}
#: Milliseconds that 99 % of them may take.
P99_DOWNLOADS = 150.0
#: Where no worker waits for a client: downloads at a time -> milliseconds that 99 % of them may take.
P99_APART = {1: 50.0, 5: 100.0, 20: 200.0}
#: Milliseconds that half of them may take longer than with stock during uploads.
P50_UPLOADS = 5.0


#: Clients at a time -> milliseconds that 99 % of the other requests may take.
P99_SLOW = {4: 50.0, 200: 150.0}
#: The part of the rate that they ask for which the clients are to get, all together.
RATE = 0.95


def judgement(result: Result) -> list[Table]:
    return [goal_table("Goals", [*_goals(result), *_slow(result)]), _slow_uploads(result)]


def _goals(result: Result) -> Iterator[Goal]:
    cases = {case.name: case for case in result.cases}
    for service in SERVICES:
        if f"{service}-download" in cases:
            yield from _downloads(service, cases[f"{service}-download"])
        if f"{service}-upload" in cases:
            yield from _uploads(service, cases[f"{service}-upload"])


def _downloads(service: str, case: CaseResult) -> Iterator[Goal]:
    times, share = DOWNLOADS[service]
    yield goal_ratio(f"{service} download, MB/s", case.median("stock"), case.median("fastio"), "≥", times)
    sendfile = service in WITH_SENDFILE
    apart = (APART,) if APART in case.variants else ()
    for row in apart:
        yield goal_ratio(f"{service} download, {row}, MB/s", case.median("stock"), case.median(row), "≥", times)
    for row in ("fastio", "fastio-sendfile", "fastio-copying") if sendfile else ("fastio", *apart):
        what = f"{service} download, {row}, server CPU s/GiB"
        yield goal_ratio(what, _server_cpu(case, "stock"), _server_cpu(case, row), "≤", share)
    for row in ("fastio", "fastio-sendfile") if sendfile else ():
        what = f"{service} download, {row}, server CPU s/GiB, nginx for stock"
        yield goal_ratio(what, _server_cpu(case, "reference-nginx"), _server_cpu(case, row), "≤", 1.0, "x nginx")
    for clients in CLIENTS_AT_ONCE:
        during = f"{service}, other requests during {clients} download{'s' * (clients > 1)}"
        stock, fast = title("stock", clients), title("fastio", clients)
        if service == SHIPPED:
            yield _never_above(case, clients, during)
            for row in apart:
                p99, figure = (case.median(title(each, clients), "p99_ms") for each in ("stock", row))
                yield Goal(f"{during}, {row}, p99 ms", p99, figure, figure, "≤", P99_APART[clients], "ms")
            continue
        for key, bound in (("p50_ms", P50_DOWNLOADS[clients]), ("p99_ms", P99_DOWNLOADS)):
            figure = case.median(fast, key)
            name = key.removesuffix("_ms")
            yield Goal(f"{during}, {name} ms", case.median(stock, key), figure, figure, "≤", bound, "ms")
        yield goal_ratio(f"{during}, MB/s of the downloads", case.median(stock), case.median(fast), "≥", times)


def _uploads(service: str, case: CaseResult) -> Iterator[Goal]:
    yield goal_ratio(f"{service} upload, MB/s", case.median("stock"), case.median("fastio"), "≥", UPLOADS[service])
    for clients in CLIENTS_AT_ONCE:
        during = f"{service}, other requests during {clients} upload{'s' * (clients > 1)}"
        if service == SHIPPED:
            yield _never_above(case, clients, during)
            continue
        stock, fast = (case.median(title(row, clients), "p50_ms") for row in ("stock", "fastio"))
        more = None if stock is None or fast is None else fast - stock
        yield Goal(f"{during}, p50 ms", stock, fast, more, "≤", P50_UPLOADS, "ms more")


def _never_above(case: CaseResult, clients: int, during: str) -> Goal:
    """Where every thread has a transfer, other requests wait for its end: with fastio no longer than without."""
    stock, fast = (case.median(title(row, clients), "p99_ms") for row in ("stock", "fastio"))
    return goal_ratio(f"{during}, p99 ms", stock, fast, "≤", 1.0)


def _server_cpu(case: CaseResult, row: str) -> float | None:
    return case.variants[row].costs().get("server_cpu_seconds_per_gib") if row in case.variants else None


def _slow(result: Result) -> Iterator[Goal]:
    cases = {case.name: case for case in result.cases}
    for clients, (rate, _) in LOADS.items():
        case = cases.get(slow_name(clients))
        if case is None:
            continue
        stock, fast = (case.median(row, "p99_ms") for row in ("stock", "fastio"))
        what = f"other requests during {clients} slow downloads, p99 ms"
        yield Goal(what, stock, fast, fast, "≤", P99_SLOW[clients], "ms")
        stock, fast = (case.median(row) for row in ("stock", "fastio"))
        reached = None if fast is None else fast * 1e6 / (clients * rate)
        yield Goal(f"{clients} slow downloads, MB/s", stock, fast, reached, "≥", RATE, "of what they ask for")


def _slow_uploads(result: Result) -> Table:
    """What other requests wait for, by what is done about slow uploads, and what that costs."""
    head = ["", "uploads", "p99 ms of other requests", "temporary files, MB", "server CPU s/GiB", "uploads, MB/s"]
    made = Table(f"{SLOW_UPLOADS} slow uploads, and what can be done about them", head, [])
    cases = {case.name: case for case in result.cases}
    for kind, chunked in KINDS.items():
        case = cases.get(slow_name(SLOW_UPLOADS, kind))
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
