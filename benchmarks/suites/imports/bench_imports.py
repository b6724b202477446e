"""Imports into three stores of a real glance-api, stock and with fastio: how long they take, and what they cost.

An image comes from the staging area, from nginx (``web-download``), or from one of the three stores (``copy-image``).
Stock hashes what it writes to the staging area, and each store's copy again.
"""

from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.goals import Ratio
from benchmarks.harness.modes import MIB

SERVERS = ("stock", "fastio")
STORES = 3
#: Bytes of an image: a service has up to four files of it at a time.
SIZE = 512 * MIB
METHODS = ("glance-direct", "web-download", "copy-image")
RELEASES = ("glance-32", "glance-33")


def _case(release: str, method: str) -> Case:
    parameters = {"stores": STORES, "flavor": "identity"}
    return Case(
        name=f"{release}-{method}", title=f"{release}: {method} of 512 MiB into {STORES} stores", workload="imports",
        variants=[
            Variant("run", label=server, parameters={"server": "" if server == "stock" else server}, against="stock")
            for server in SERVERS
        ],
        parameters={"method": method, "size": SIZE}, rounds=5, warmup=1, baseline="stock", unit="s",
        columns=("server_cpu_seconds",), backend=release, backend_parameters=parameters,
        beside={"fastio": (release, {**parameters, "fastio": "on"}), "nginx": ("http", {})},
        long=(release, method) != ("glance-33", "web-download"),
    )  # fmt: skip


#: The time, and the processor's time, that an import may take of stock's.
GOALS = (
    Ratio("{case}, s", "≤", 0.5),
    Ratio("{case}, server CPU s", "≤", 0.4, key="server_cpu_seconds"),
)

CASES = [_case(release, method) for release in RELEASES for method in METHODS]


def test_imports(recorded):
    recorded()
