"""The cost of tracing: microseconds of CPU for a span, and the throughput of a real glance-api.

The goals are 10 us for a span, including its writing, and 1 % of the throughput of downloads of 16 MiB. Two
processes of the same service differ by more than 1 %. Downloads from one process, some recorded and some not, therefore
decide, for release 32 (eventlet) and 33 (threads), stock and with fastio: pairs as those of the suite never_slower.
"""

from benchmarks.backends.glance import BY_REQUEST
from benchmarks.harness.engine import Case
from benchmarks.harness.modes import MIB
from benchmarks.suites.never_slower.bench_never_slower import GLANCE

#: Seconds for the pairs of a server that is not decided earlier, and the fewest and the most pairs.
BUDGET = {"seconds": 200, "least": 100, "most": 10_000}


def _pairs(release: str, fastio: str) -> Case:
    row = "fastio" if fastio == "on" else "stock"
    return Case(
        name=f"{release}-pairs-{row}", title=f"{release}, {row}: downloads of 16 MiB with a trace and without, in turn",
        workload="never_slower", variants=["pairs"],
        parameters={
            "operation": "glance-download", "mode": GLANCE[release][0], "size": 16 * MIB, "busy": 0, "many": 1,
            "traced": 1, **BUDGET,
        },
        quick={"size": MIB, "seconds": 0.0, "least": 1}, rounds=1, warmup=0, timeout=900, unit="slower",
        value="slower", columns=("lowest",), backend=release,
        backend_parameters={"trace": BY_REQUEST, "fastio": fastio}, prepare="prepare",
        long=fastio == "off",
    )  # fmt: skip


CASES = [
    Case(
        name="spans",
        title="CPU for a span",
        workload="trace",
        variants=["spans", "requests"],
        parameters={"count": 10_000},
        quick={"count": 1000},
        unit="us",
        value="span_us",
    ),
    *(_pairs(release, fastio) for release in GLANCE for fastio in ("off", "on")),
]


def test_trace(recorded):
    recorded()
