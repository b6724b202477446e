"""What counting costs: nanoseconds of CPU for a call that a patch counts, beyond those of the call.

The goal is 100 ns.
"""

from benchmarks.harness.engine import Case
from benchmarks.suites.counting.workload import VARIANTS

CASES = [
    Case(
        name="calls",
        title="CPU for the count of a call",
        workload="counting",
        variants=tuple(VARIANTS),
        parameters={"count": 1_000_000},
        quick={"count": 1000},
        unit="ns",
        value="call_ns",
    )
]


def test_counting(recorded):
    recorded()
