"""Objects through the Python clients of an object store, to and from a server on the same host that only counts.

``get_object()`` of openstacksdk, ``put_object()`` of python-swiftclient, and ``requests.put()`` of a file and of what
is in memory already. The reference of a file is ``socket.sendfile()``.
"""

from benchmarks.harness.engine import Case
from benchmarks.harness.goals import Ratio
from benchmarks.harness.modes import GIB, MIB, MODES
from benchmarks.suites.clients.workload import OPERATIONS

TITLES = {
    "openstacksdk-object": ("openstacksdk's get_object() of 256 MiB", 256 * MIB),
    "swiftclient-put": ("swiftclient's put_object() of a file of 256 MiB", 256 * MIB),
    "upload-file": ("requests.put() of a file of 1 GiB", GIB),
    "upload-memory": ("requests.put() of an io.BytesIO of 1 GiB", GIB),
}
#: Shares of stock's time and CPU time that a file may take.
GOALS = [
    Ratio(f"{{case}}, {mode}, {what}", "≤", most, f"{mode}-stock", f"{mode}-fastio", key, cases="upload-file")
    for mode in ("native", "eventlet")
    for what, key, most in (("seconds", "seconds", 0.333), ("CPU s", "cpu_seconds", 0.4))
]

CASES = [
    Case(
        name=operation,
        title=title,
        workload="clients",
        variants=(*MODES, "reference-sendfile") if operation == "upload-file" else tuple(MODES),
        parameters={"size": size, "operation": operation},
        baseline="native-stock",
        needs=OPERATIONS[operation],
    )
    for operation, (title, size) in TITLES.items()
]


def test_clients(recorded):
    recorded()
