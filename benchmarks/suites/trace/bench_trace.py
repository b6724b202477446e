"""What tracing costs: microseconds of CPU for a span, and the throughput of a real glance-api.

The goals are 10 us for a span, including what writes it, and 1 % of the throughput of downloads of 16 MiB. Two
processes of the same service differ by more than 1 %. So downloads from one process, some recorded and some not, decide
about it, for release 32 (eventlet) and 33 (threads), stock and with fastio.
"""

from benchmarks.backends.glance import BY_REQUEST
from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.modes import MIB
from benchmarks.suites.glance.bench_glance import RELEASES
from benchmarks.suites.trace import tables


def _pairs(release: str) -> Case:
    return Case(
        name=f"{release}-pairs",
        title=f"{release}: time of downloads of 16 MiB with a trace, by that of others without, in turn",
        workload="trace",
        variants=[
            Variant("pairs", label=row, parameters={"server": server}, against=row)
            for row, server in (("stock", ""), ("fastio", "fastio"))
        ],
        parameters={"size": 16 * MIB, "pairs": 30},
        quick={"size": MIB, "pairs": 1},
        rounds=250,
        enough=tables.sure,
        unit="x",
        value="times",
        columns=("cost_us", "server_ms"),
        warmup=0,
        backend=release,
        backend_parameters={"trace": BY_REQUEST},
        beside={"fastio": (release, {"fastio": "on", "trace": BY_REQUEST})},
        prepare="prepare",
    )


CASES = [
    Case(
        name="spans",
        title="CPU for a span, and for what passes within one",
        workload="trace",
        variants=[
            "spans",
            "requests",
            Variant("chunks", parameters={"count": 500_000}, against="chunks"),
            Variant("chunks-traced", parameters={"count": 500_000}, against="chunks"),
            Variant("waits", against="waits"),
            Variant("waits-traced", against="waits"),
        ],
        parameters={"count": 10_000},
        quick={"count": 1000},
        unit="us",
        value="span_us",
        needs=("eventlet",),
    ),
    *(_pairs(release) for release in RELEASES),
]


def test_trace(recorded):
    recorded()
