"""The goals of fastio in the service: figures are medians, or ratios of two medians of the same interleaved run."""

from collections.abc import Iterator

from benchmarks.harness.goals import Goal, goal_ratio, goal_table
from benchmarks.harness.results import CaseResult, Result
from benchmarks.suites.glance.bench_glance import CLIENTS_AT_ONCE, RELEASES, WITH_SENDFILE, title
from fastio.tables import Table

#: Release -> times stock's throughput that a download has to reach, and the share of stock's CPU time it may take.
DOWNLOADS = {"glance-32": (1.9, 0.5), "glance-33": (1.4, 0.7)}
#: Release -> times the throughput of stock that an upload has to reach.
UPLOADS = {"glance-32": 1.8, "glance-33": 2.2}
#: Downloads at a time -> milliseconds that half of the other requests may take.
P50_DOWNLOADS = {1: 15.0, 5: 20.0, 20: 40.0}
#: Milliseconds that 99 % of them may take.
P99_DOWNLOADS = 150.0
#: Milliseconds that half of them may take longer than with stock during uploads.
P50_UPLOADS = 5.0


def judgement(result: Result) -> list[Table]:
    return [goal_table("Goals", _goals(result))]


def _goals(result: Result) -> Iterator[Goal]:
    cases = {case.name: case for case in result.cases}
    for release in RELEASES:
        if f"{release}-download" in cases:
            yield from _downloads(release, cases[f"{release}-download"])
        if f"{release}-upload" in cases:
            yield from _uploads(release, cases[f"{release}-upload"])


def _downloads(release: str, case: CaseResult) -> Iterator[Goal]:
    times, share = DOWNLOADS[release]
    yield goal_ratio(f"{release} download, MB/s", case.median("stock"), case.median("fastio"), "≥", times)
    sendfile = release in WITH_SENDFILE
    for row in ("fastio", "fastio-sendfile", "fastio-copying") if sendfile else ("fastio",):
        what = f"{release} download, {row}, server CPU s/GiB"
        yield goal_ratio(what, _server_cpu(case, "stock"), _server_cpu(case, row), "≤", share)
    for row in ("fastio", "fastio-sendfile") if sendfile else ():
        what = f"{release} download, {row}, server CPU s/GiB, nginx for stock"
        yield goal_ratio(what, _server_cpu(case, "limit-nginx"), _server_cpu(case, row), "≤", 1.0, "x nginx")
    for clients in CLIENTS_AT_ONCE:
        during = f"{release}, other requests during {clients} download{'s' * (clients > 1)}"
        stock, fast = title("stock", clients), title("fastio", clients)
        for key, bound in (("p50_ms", P50_DOWNLOADS[clients]), ("p99_ms", P99_DOWNLOADS)):
            figure = case.median(fast, key)
            name = key.removesuffix("_ms")
            yield Goal(f"{during}, {name} ms", case.median(stock, key), figure, figure, "≤", bound, "ms")
        yield goal_ratio(f"{during}, MB/s of the downloads", case.median(stock), case.median(fast), "≥", times)


def _uploads(release: str, case: CaseResult) -> Iterator[Goal]:
    yield goal_ratio(f"{release} upload, MB/s", case.median("stock"), case.median("fastio"), "≥", UPLOADS[release])
    for clients in CLIENTS_AT_ONCE:
        stock, fast = (case.median(title(row, clients), "p50_ms") for row in ("stock", "fastio"))
        more = None if stock is None or fast is None else fast - stock
        what = f"{release}, other requests during {clients} upload{'s' * (clients > 1)}, p50 ms"
        yield Goal(what, stock, fast, more, "≤", P50_UPLOADS, "ms more")


def _server_cpu(case: CaseResult, row: str) -> float | None:
    return case.variants[row].costs().get("server_cpu_seconds_per_gib") if row in case.variants else None
