"""A real glance-api with 5 to 2,000 downloads at a time, stock and with fastio: when it is saturated, and by what.

Release 33 runs under uWSGI, first as it is shipped (4 processes, one thread each) and then as one process with threads,
and release 32 with its eventlet server. All run as behind keystone, with an identity that is already confirmed. Rows
marked ``traced`` record a trace of the server. The trace shows how long the requests spent in each state. The speed of
these rows is not compared.
"""

from collections.abc import Iterator
from typing import Any

from benchmarks.backends.glance import AS_SHIPPED
from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.modes import MIB
from benchmarks.suites.glance.bench_glance import SHIPPED

#: Requests at a time -> requests in all: those of the study, up to a thousand nodes twice. Users with equal shares
#: finish together, so a run needs several waves of them.
LEVELS = {5: 200, 20: 200, 100: 1200, 400: 1600, 800: 2400, 2000: 4000}
#: Of which a smoke run has the first.
QUICK = {"total": 20, "size": MIB, "objects": 2, "records": ""}
#: Bytes of an image: of them a download takes the time that it does of one hundred times as many, in less of ours.
SIZE = 16 * MIB
IMAGES = 8
#: What is measured -> the backend and its parameters; uWSGI's queue is to be as long as eventlet's.
_QUEUE = {"flavor": "identity", "listen": 4096}
SERVICES: dict[str, tuple[str, dict[str, Any]]] = {
    SHIPPED: ("glance-33", {**_QUEUE, **AS_SHIPPED}),
    "glance-32": ("glance-32", {"flavor": "identity"}),
    "glance-33": ("glance-33", _QUEUE),
}
#: At one of the levels glance 32 is also measured without the patch that has the kernel send files.
COPYING, COPYING_AT = "fastio, copying", 100
#: Seconds that a request may take, with the most at a time.
PATIENCE = 300
ROUNDS = 2


def traced(server: str) -> str:
    """Title of the row of a server that records a trace."""
    return f"{server}, traced"


def _variants(case: str, servers: tuple[str, ...]) -> Iterator[Variant]:
    for server in servers:
        records = f"concurrency/{case}/{server.replace(', ', '-')}"
        parameters = {"server": "" if server == "stock" else server, "records": records}
        yield Variant("run", label=server, parameters=parameters, against="stock")
    for server in ("stock", "fastio"):
        parameters = {"server": traced(server), "records": f"concurrency/{case}/{server}-traced"}
        yield Variant("run", label=traced(server), parameters=parameters, rounds=1, against=traced("stock"))


def _case(service: str, users: int, total: int) -> Case:
    name = f"{service}-{users}"
    release, settings = SERVICES[service]
    servers: tuple[str, ...] = ("stock", "fastio")
    beside = {
        "fastio": (release, {**settings, "fastio": "on"}),
        traced("stock"): (release, {**settings, "trace": "on"}),
        traced("fastio"): (release, {**settings, "fastio": "on", "trace": "on"}),
    }
    if (service, users) == ("glance-32", COPYING_AT):
        servers += (COPYING,)
        beside[COPYING] = (release, {**settings, "fastio": "on", "disabled": "glance_sendfile"})
    return Case(
        name=name, title=f"{service}: {users} downloads of 16 MiB at a time", workload="concurrency",
        variants=tuple(_variants(name, servers)), rounds=ROUNDS, warmup=0, baseline="stock", unit="MiB/s",
        parameters={"users": users, "total": total, "size": SIZE, "objects": IMAGES, "patience": PATIENCE},
        columns=("operations_per_second", "success_ratio", "whole_p50_ms", "whole_p99_ms", "servers_cpu",
                 "generator_cpu"),
        quick=QUICK, backend=release, backend_parameters=settings, prepare="prepare", needs=("locust",), timeout=900,
        beside=beside,
        long=users != min(LEVELS),
    )  # fmt: skip


CASES = [_case(service, users, total) for service in SERVICES for users, total in LEVELS.items()]


def test_concurrency(recorded):
    recorded()
