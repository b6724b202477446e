"""What tracing costs: microseconds of CPU for an event, and the throughput of downloads from a real glance-api.

An event may cost 3 us, the writer's part included, and downloads of 16 MiB may lose 1 % of their throughput. Releases
32 (eventlet) and 33 (threads), stock and with fastio, each with and without a trace, interleaved.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.harness import statistics
from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.modes import MIB
from benchmarks.harness.results import CaseResult, Result
from benchmarks.harness.tables import EMPTY, Table, number
from benchmarks.suites.glance.cases import RELEASES

#: Microseconds of CPU.
EVENT = 3.0
#: Share of the throughput that is left.
DOWNLOADS = 0.99

SERVERS = {
    "stock": {},
    "stock, traced": {"trace": "on"},
    "fastio": {"fastio": "on"},
    "fastio, traced": {"fastio": "on", "trace": "on"},
}


def _key(title: str) -> str:
    return title.replace(", ", "-")


def _downloads(release: str) -> Case:
    return Case(
        name=f"{release}-downloads",
        title=f"{release}: downloads of 16 MiB, one after the other",
        workload="trace",
        variants=[
            Variant(
                "downloads",
                label=title,
                parameters={"server": "" if title == "stock" else _key(title)},
                against=title.removesuffix(", traced"),
            )
            for title in SERVERS
        ],
        parameters={"size": 16 * MIB, "seconds": 2},
        quick={"size": MIB, "seconds": 0},
        rounds=15,
        baseline="stock",
        columns=("server_ms",),
        warmup=0,
        backend=release,
        beside={_key(title): (release, chosen) for title, chosen in SERVERS.items() if title != "stock"},
        prepare="prepare",
    )


CASES = [
    Case(
        name="events",
        title="CPU for an event, and for what passes without one",
        workload="trace",
        variants=[
            "spans",
            "points",
            "requests",
            Variant("chunks", parameters={"count": 500_000}, against="chunks"),
            Variant("chunks-traced", parameters={"count": 500_000}, against="chunks"),
            Variant("waits", against="waits"),
            Variant("waits-traced", against="waits"),
        ],
        parameters={"count": 10_000},
        quick={"count": 1000},
        unit="us",
        value="event_us",
        needs=("eventlet",),
    ),
    *(_downloads(release) for release in RELEASES),
]


def judgement(result: Result) -> list[Table]:
    rows = [row for case in result.cases for row in _judged(case)]
    return [Table("What tracing may cost", ["figure", "may be", "is", "met"], rows)]


def _judged(case: CaseResult) -> Iterator[list[str]]:
    for title in case.variants:
        figures = case.figures(title)
        if not figures:
            continue
        if title in ("spans", "points", "requests"):
            found = statistics.median(figures)
            yield [f"us of an event: {title}", f"<= {EVENT:g}", number(found), "yes" if found <= EVENT else "no"]
        elif title.endswith(", traced") and case.figures(case.against(title)):
            kept = statistics.ratio(figures, case.figures(case.against(title)))
            # What can not be told apart from the bound is not judged.
            met = "yes" if kept.low >= DOWNLOADS else "no" if kept.high < DOWNLOADS else EMPTY
            yield [f"{case.name}: {title}", f">= {DOWNLOADS:g} x untraced", str(kept), met]


def test_trace(recorded):
    recorded()
