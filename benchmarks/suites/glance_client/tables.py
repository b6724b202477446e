"""The goals of fastio in the client: figures are medians, or ratios of two medians of the same interleaved run."""

from collections.abc import Iterator

from benchmarks.harness.goals import Goal, goal_ratio, goal_table
from benchmarks.harness.results import Result
from fastio.tables import Table

#: Times curl's CPU time that glanceclient may take for all but the hashing.
CLIENT_CPU = 1.2
#: Share of stock's time that a verified download may take over HTTP.
CLIENT_TIME = 0.87


def judgement(result: Result) -> list[Table]:
    return [goal_table("Goals", _goals(result))]


def _goals(result: Result) -> Iterator[Goal]:
    cases = {case.name: case for case in result.cases}
    for scheme in ("http", "https"):
        case = cases.get(f"client-{scheme}")
        if case is None:
            continue
        curl, hashing = case.median("curl", "cpu_seconds"), case.median("limit-sha512", "transfer_cpu_seconds")
        for row in ("api-fastio", "api-eventlet-fastio"):
            spent = case.median(row, "transfer_cpu_seconds")
            rest = None if spent is None or hashing is None else spent - hashing
            what = f"glanceclient over {scheme.upper()}, {row}, CPU s without the hashing, curl for stock"
            yield goal_ratio(what, curl, rest, "≤", CLIENT_CPU, "x curl")
            plain = f"{row}-unverified"
            what = f"glanceclient over {scheme.upper()}, {plain}, CPU s, curl for stock"
            yield goal_ratio(what, curl, case.median(plain, "transfer_cpu_seconds"), "≤", CLIENT_CPU, "x curl")
        if scheme == "http":
            stock, fast = (case.median(row, "transfer_seconds") for row in ("api-stock", "api-fastio"))
            yield goal_ratio("glanceclient over HTTP, verified, seconds", stock, fast, "≤", CLIENT_TIME)
