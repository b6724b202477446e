"""What tracing costs: microseconds of CPU for an event, and the throughput of a real glance-api.

The goals are 3 us for an event, including the writer's part, and 1 % of the throughput of downloads of 16 MiB.
Releases 32 (eventlet) and 33 (threads) are measured stock and with fastio, each with and without a trace, interleaved.
That shows what the downloads take; pairs of downloads decide about the 1 %.
"""

from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.modes import MIB
from benchmarks.suites.glance.bench_glance import RELEASES
from benchmarks.suites.trace import tables

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


def _pairs(release: str) -> Case:
    compared = {"stock": ("stock", ""), "fastio": ("fastio", "fastio")}
    return Case(
        name=f"{release}-pairs",
        title=f"{release}: time of a download of 16 MiB with a trace, by that of one without, in turn",
        workload="trace",
        variants=[
            Variant(
                "pairs",
                label=label,
                parameters={"server": _key(f"{title}, traced"), "without": without},
                against=label,
            )
            for label, (title, without) in compared.items()
        ],
        parameters={"size": 16 * MIB, "seconds": 0.5, "pairs": 8},
        quick={"size": MIB, "seconds": 0, "pairs": 1},
        rounds=100,
        enough=tables.sure,
        unit="x",
        value="times",
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
    *(_pairs(release) for release in RELEASES),
]


def test_trace(recorded):
    recorded()
