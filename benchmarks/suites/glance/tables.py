"""What was asked of fastio in the service, beside what a result has: of ``bench_glance`` and ``bench_glance_client``.

``python -m benchmarks.suites.glance.tables results/glance.json results/glance_client.json [--markdown]``. Each
figure is a median, or a ratio of two medians of the same interleaved run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.harness import results, statistics, tables
from benchmarks.harness.goals import HEAD, Goal
from benchmarks.harness.results import CaseResult, Result
from benchmarks.harness.tables import Table
from benchmarks.suites.glance.cases import CLIENTS_AT_ONCE, RELEASES, WITH_SENDFILE, title

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
#: Times curl's CPU time that glanceclient may take for all but the hashing.
CLIENT_CPU = 1.2
#: Share of stock's time that a verified download may take over HTTP.
CLIENT_TIME = 0.87


def table(given: Sequence[Result]) -> Table:
    """All that is asked of what these results have."""
    cases = {case.name: case for result in given for case in result.cases}
    found = [*_service(cases), *_client(cases)]
    return Table("What is asked", list(HEAD), [goal.row() for goal in found])


def _service(cases: Mapping[str, CaseResult]) -> Iterator[Goal]:
    for release in RELEASES:
        if f"{release}-download" in cases:
            yield from _downloads(release, cases[f"{release}-download"])
        if f"{release}-upload" in cases:
            yield from _uploads(release, cases[f"{release}-upload"])


def _downloads(release: str, case: CaseResult) -> Iterator[Goal]:
    times, share = DOWNLOADS[release]
    yield _ratio(f"{release} download, MB/s", _rate(case, "stock"), _rate(case, "fastio"), "≥", times)
    sendfile = release in WITH_SENDFILE
    for row in ("fastio", "fastio-sendfile", "fastio-copying") if sendfile else ("fastio",):
        what = f"{release} download, {row}, server CPU s/GiB"
        yield _ratio(what, _server_cpu(case, "stock"), _server_cpu(case, row), "≤", share)
    for row in ("fastio", "fastio-sendfile") if sendfile else ():
        what = f"{release} download, {row}, server CPU s/GiB, nginx for stock"
        yield _ratio(what, _server_cpu(case, "limit-nginx"), _server_cpu(case, row), "≤", 1.0, "x nginx")
    for clients in CLIENTS_AT_ONCE:
        during = f"{release}, other requests during {clients} download{'s' * (clients > 1)}"
        stock, fast = title("stock", clients), title("fastio", clients)
        for key, bound in (("p50_ms", P50_DOWNLOADS[clients]), ("p99_ms", P99_DOWNLOADS)):
            figure = _median(case, fast, key)
            name = key.removesuffix("_ms")
            yield Goal(f"{during}, {name} ms", _median(case, stock, key), figure, figure, "≤", bound, "ms")
        yield _ratio(f"{during}, MB/s of the downloads", _rate(case, stock), _rate(case, fast), "≥", times)


def _uploads(release: str, case: CaseResult) -> Iterator[Goal]:
    yield _ratio(f"{release} upload, MB/s", _rate(case, "stock"), _rate(case, "fastio"), "≥", UPLOADS[release])
    for clients in CLIENTS_AT_ONCE:
        stock, fast = (_median(case, title(row, clients), "p50_ms") for row in ("stock", "fastio"))
        more = None if stock is None or fast is None else fast - stock
        what = f"{release}, other requests during {clients} upload{'s' * (clients > 1)}, p50 ms"
        yield Goal(what, stock, fast, more, "≤", P50_UPLOADS, "ms more")


def _client(cases: Mapping[str, CaseResult]) -> Iterator[Goal]:
    for scheme in ("http", "https"):
        case = cases.get(f"client-{scheme}")
        if case is None:
            continue
        curl, hashing = _median(case, "curl", "cpu_seconds"), _median(case, "limit-sha512", "transfer_cpu_seconds")
        for row in ("api-fastio", "api-eventlet-fastio"):
            spent = _median(case, row, "transfer_cpu_seconds")
            rest = None if spent is None or hashing is None else spent - hashing
            what = f"glanceclient over {scheme.upper()}, {row}, CPU s without the hashing, curl for stock"
            yield _ratio(what, curl, rest, "≤", CLIENT_CPU, "x curl")
            plain = f"{row}-unverified"
            what = f"glanceclient over {scheme.upper()}, {plain}, CPU s, curl for stock"
            yield _ratio(what, curl, _median(case, plain, "transfer_cpu_seconds"), "≤", CLIENT_CPU, "x curl")
        if scheme == "http":
            stock, fast = (_median(case, row, "transfer_seconds") for row in ("api-stock", "api-fastio"))
            yield _ratio("glanceclient over HTTP, verified, seconds", stock, fast, "≤", CLIENT_TIME)


def _ratio(
    what: str, stock: float | None, fastio: float | None, relation: str, bound: float, unit: str = "x stock"
) -> Goal:
    reached = fastio / stock if stock and fastio is not None else None
    return Goal(what, stock, fastio, reached, relation, bound, unit)


def _median(case: CaseResult, row: str, key: str) -> float | None:
    return case.variants[row].median(key) if row in case.variants else None


def _rate(case: CaseResult, row: str) -> float | None:
    figures = case.figures(row) if row in case.variants else []
    return statistics.median(figures) if figures else None


def _server_cpu(case: CaseResult, row: str) -> float | None:
    return case.variants[row].costs().get("server_cpu_seconds_per_gib") if row in case.variants else None


def main(arguments: Sequence[str] | None = None) -> int:
    options = tables.parser(
        "suites.glance.tables",
        "Print what is asked in the service, and what is met.",
        "of the suites glance and glance_client",
        "+",
    )
    chosen = options.parse_args(arguments)
    try:
        given = [results.read(path) for path in chosen.result]
    except (OSError, results.ResultError) as error:
        print(error, file=sys.stderr)
        return 2
    made = table(given)
    if not made.rows:
        print(f"{', '.join(map(str, chosen.result))}: nothing of what is asked is in it", file=sys.stderr)
        return 1
    if chosen.markdown:
        print(tables.table_markdown(made))
    else:
        tables.show_tables([made], tables.summary(given[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
