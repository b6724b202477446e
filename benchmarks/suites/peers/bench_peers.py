"""200 MiB from a child and to a child: other libraries, stock, fastio and a reference."""

from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.modes import KIB, MIB
from benchmarks.suites.peers import workload as peers

TITLES = {"output": "200 MiB of a child's output", "input": "200 MiB of input to a child"}

CASES = [
    Case(
        name=direction,
        title=title,
        workload="peers",
        variants=[Variant(name, skip=peers.why_not(name)) for name in peers.VARIANTS],
        parameters={"size": 200 * MIB, "stock_green_size": 8 * MIB, "direction": direction},
        baseline="eventlet-fastio",
        quick={"size": MIB, "stock_green_size": 128 * KIB},
    )
    for direction, title in TITLES.items()
]


def test_peers(recorded):
    recorded()
