"""``requests.put()`` of 1 GiB from memory, to a server that throws it away: of a file, and of an object."""

from benchmarks.harness.engine import Case
from benchmarks.harness.modes import GIB, MIB
from benchmarks.suites.uploads.workload import VARIANTS

TITLES = {"file": "requests.put() of a file of 1 GiB", "object": "requests.put() of 1 GiB from an object with read()"}

CASES = [
    Case(
        name=body,
        title=title,
        workload="uploads",
        variants=tuple(VARIANTS),
        parameters={"size": GIB, "body": body},
        baseline="native-stock",
        quick={"size": MIB},
    )
    for body, title in TITLES.items()
]


def test_uploads(recorded):
    recorded()
