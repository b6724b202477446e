"""Objects through the Python clients of an object store, to and from a server on the same host that only counts.

``get_object()`` of openstacksdk, ``put_object()`` of python-swiftclient, and ``requests.put()`` of a file and of what
is in memory already. The reference of a file is ``socket.sendfile()``.
"""

from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.goals import Ratio
from benchmarks.harness.modes import GIB, KIB, MIB, MODES

#: Each operation: its title, bytes, and what it imports.
OPERATIONS = {
    "openstacksdk-object": ("openstacksdk's get_object() of 256 MiB", 256 * MIB, "openstack"),
    "swiftclient-put": ("swiftclient's put_object() of a file of 256 MiB", 256 * MIB, "swiftclient"),
    "upload-file": ("requests.put() of a file of 1 GiB", GIB, "requests"),
    "upload-memory": ("requests.put() of an io.BytesIO of 1 GiB", GIB, "requests"),
}
REFERENCE = Variant("native-stock", "reference-sendfile", {"operation": "upload-sendfile"})
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
        workload="processes",
        variants=(*MODES, *[REFERENCE] * (operation == "upload-file")),
        # A small object comes first, so that imports and the connection are not measured.
        parameters={"size": size, "operation": operation, "first": 64 * KIB, "url": "plain"},
        baseline="native-stock",
        needs=(needed,),
    )
    for operation, (title, size, needed) in OPERATIONS.items()
]


def test_clients(recorded):
    recorded()
