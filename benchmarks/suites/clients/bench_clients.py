"""Objects of 256 MiB through the Python clients of an object store: ``get_object()`` of openstacksdk and
``put_object()`` of python-swiftclient, to and from a server on the same host that only counts.
"""

from benchmarks.harness.engine import Case
from benchmarks.harness.modes import MIB
from benchmarks.suites.clients.workload import OPERATIONS, VARIANTS

TITLES = {
    "openstacksdk-object": "openstacksdk's get_object() of 256 MiB",
    "swiftclient-put": "swiftclient's put_object() of a file of 256 MiB",
}

CASES = [
    Case(
        name=operation,
        title=TITLES[operation],
        workload="clients",
        variants=tuple(VARIANTS),
        parameters={"size": 256 * MIB, "operation": operation},
        baseline="native-stock",
        needs=needs,
    )
    for operation, needs in OPERATIONS.items()
]


def test_clients(recorded):
    recorded()
