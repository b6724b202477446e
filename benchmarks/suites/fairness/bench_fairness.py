"""How late a greenlet is that wants to run every millisecond, while others move much data."""

from benchmarks.harness.engine import Case
from benchmarks.harness.modes import GREEN, MIB

#: Transfers in a batch: enough heartbeats for a 99th percentile, in less than a minute of stock.
BATCHES = {1: 10, 8: 3, 64: 1}

CASES = [
    Case(
        name=f"{transfers}-transfers",
        title=f"Lateness of a 1 ms heartbeat, 99th percentile, during {transfers} x 64 MiB",
        workload="fairness",
        variants=GREEN,
        parameters={"size": 64 * MIB, "transfers": transfers, "batches": batches, "period": 0.001},
        baseline="eventlet-stock",
        unit="ms",
        value="p99_ms",
        columns=("p50_ms", "worst_ms", "arrival_p99_ms", "mb_s"),
        quick={"size": MIB, "batches": 1},
    )
    for transfers, batches in BATCHES.items()
]


def test_fairness(recorded):
    recorded()
