"""A real glance-api with 5 to 2,000 concurrent downloads, stock and with fastio: when it is saturated, and by what.

Release 33 runs under uWSGI, first as shipped (4 processes, one thread each) and then as one process with threads,
and release 32 with its eventlet server. All run as behind keystone, with an identity that is already confirmed. Rows
marked ``traced`` record a trace of the server. The trace shows how long the requests spent in each state. The speed of
these rows is not compared.

The offered load at which the 99th percentile passes 500 ms, also of a log server: downloads are due at random moments,
as from independent clients, at one rate after the other. Times count from when a download was due, so a server that
stalls cannot slow down who measures it. The rates at which the 99th percentile reaches the limit are compared, as the
bytes that are asked for in a second.

A client that is not local: the same load from 1 and from 8 machines, over links of 1 and 10 Gbit/s. The
machines are network namespaces. Release 32 sends images in each way that it does to others: stock, and with fastio by
copying and with ``sendfile()``; and by HTTPS. Each run is the same number of whole images. Where the link is the limit,
the rows have the same bandwidth, and differ in CPU time.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.backends.glance import AS_SHIPPED
from benchmarks.backends.network import Network
from benchmarks.harness import servers
from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.goals import Asked, Goal, longer
from benchmarks.harness.modes import MIB
from benchmarks.harness.results import CaseResult, Result
from benchmarks.suites.disk_swift.bench_disk_swift import LOG, SOURCES
from benchmarks.suites.glance.bench_glance import ELSEWHERE, SHIPPED

#: Concurrent requests -> requests in all: those of the study, up to a thousand nodes twice. Users with equal shares
#: finish together, so a run needs several waves of them.
LEVELS = {5: 200, 20: 200, 100: 1200, 400: 1600, 800: 2400, 2000: 4000}
#: Of which a smoke run has the first.
QUICK = {"total": 20, "size": MIB, "objects": 2, "records": ""}
#: Bytes of an image: of them a download takes the time that it does of one hundred times as many, in less of ours.
SIZE = 16 * MIB
IMAGES = 8
#: Service -> the backend and its parameters; uWSGI's queue is to be as long as eventlet's.
_QUEUE = {"flavor": "identity", "listen": 4096}
SERVICES: dict[str, tuple[str, dict[str, Any]]] = {
    SHIPPED: ("glance-33", {**_QUEUE, **AS_SHIPPED}),
    "glance-32": ("glance-32", {"flavor": "identity"}),
    "glance-33": ("glance-33", _QUEUE),
}
#: At one of the levels glance 32 is also measured without the patch that has the kernel send files.
COPYING, COPYING_AT = "fastio, copying", 100
#: Seconds that a request may take, with the most concurrent ones.
PATIENCE = 300
ROUNDS = 2


def traced(server: str) -> str:
    """Title of the row of a server that records a trace."""
    return f"{server}, traced"


def _variants(case: str, names: tuple[str, ...]) -> Iterator[Variant]:
    for server in names:
        records = f"concurrency/{case}/{server.replace(', ', '-')}"
        parameters = {"server": "" if server == "stock" else server, "records": records}
        yield Variant("run", label=server, parameters=parameters, against="stock")
    for server in ("stock", "fastio"):
        parameters = {"server": traced(server), "records": f"concurrency/{case}/{server}-traced"}
        yield Variant("run", label=traced(server), parameters=parameters, rounds=1, against=traced("stock"))


def _case(service: str, users: int, total: int) -> Case:
    name = f"{service}-{users}"
    release, settings = SERVICES[service]
    names: tuple[str, ...] = ("stock", "fastio")
    beside = {
        "fastio": (release, {**settings, "fastio": "on"}),
        traced("stock"): (release, {**settings, "trace": "on"}),
        traced("fastio"): (release, {**settings, "fastio": "on", "trace": "on"}),
    }
    if (service, users) == ("glance-32", COPYING_AT):
        names += (COPYING,)
        beside[COPYING] = (release, {**settings, "fastio": "on", "disabled": "glance_sendfile"})
    return Case(
        name=name, title=f"{service}: {users} concurrent downloads of 16 MiB", workload="concurrency",
        variants=tuple(_variants(name, names)), rounds=ROUNDS, warmup=0, baseline="stock", unit="MiB/s",
        parameters={"users": users, "total": total, "size": SIZE, "objects": IMAGES, "patience": PATIENCE},
        columns=("operations_per_second", "success_ratio", "whole_p50_ms", "whole_p99_ms", "servers_cpu",
                 "generator_cpu"),
        quick=QUICK, backend=release, backend_parameters=settings, prepare="prepare", needs=("locust",), timeout=900,
        beside=beside,
        long=users != min(LEVELS),
    )  # fmt: skip


# --- a rate that grows

SERVERS = ("stock", "fastio")
#: Milliseconds.
LIMIT = 500
#: Each rate is the last one times this.
FACTOR = 1.25
#: Downloads at the same time, at the most: as many as no service here carries within the limit.
USERS = 200
#: Of a smoke run: two rates, of which the second is the last.
QUICK_SEARCH = {"lowest": 5, "highest": 6, "seconds": 1, "objects": 2, "size": MIB // 8}
#: How the rate is looked for: seconds for which each rate is offered, and seconds that a download may take.
SEARCH = {"limit": LIMIT, "factor": FACTOR, "highest": 5000, "seconds": 6, "patience": 3, "users": USERS}

_IMAGES = {"kind": "glance", "size": 16 * MIB, "objects": 8, "lowest": 16, "source": ELSEWHERE}
_LOGS = {"kind": "logs", "size": LOG, "objects": 50, "seconds": 4}
#: Of each source. It begins below half of what the log server carries, and ends above what the machine can: a search of
#: eight rates at the most, which takes less than a minute. Of logs on disk, one process of the load would be the limit.
_RATES: dict[str, dict[str, int]] = {
    "disk": {"lowest": 300, "highest": 1200, "processes": 2},
    "swift": {"lowest": 40, "highest": 200},
}


def _offer(name: str, title: str, rows: Mapping[str, Mapping[str, Any]], own: Mapping[str, Any], **fields: Any) -> Case:
    return Case(
        name=f"offered-{name}", title=f"{title}: offered load with p99 at {LIMIT} ms", workload="concurrency",
        variants=[Variant("offered", label=server, parameters=rows[server], against="stock") for server in SERVERS],
        parameters={**SEARCH, **own}, rounds=5, warmup=0, baseline="stock", unit="MiB/s", timeout=600,
        quick=QUICK_SEARCH, columns=("operations_per_second", "p50_ms", "generator_cpu"), prepare="prepare-offered",
        needs=("locust",), **fields,
    )  # fmt: skip


def _glance(service: str) -> Case:
    release, settings = SERVICES[service]
    return _offer(
        service, f"{service}, downloads of 16 MiB", {"stock": {"server": ""}, "fastio": {"server": "fastio"}}, _IMAGES,
        backend=release, backend_parameters=settings, beside={"fastio": (release, {**settings, "fastio": "on"})},
        long=service != "glance-32",
    )  # fmt: skip


def _logs(source: str) -> Case:
    rows = {server: {"fastio": "on" if server == "fastio" else "off"} for server in SERVERS}
    return _offer(
        f"logs-{source}", f"log server, logs of 1.2 MB on {source}", rows,
        {**_LOGS, **SOURCES[source], **_RATES[source]},
        backend="swift", long=source != "disk",
    )  # fmt: skip


# --- over a network

LINKED = "glance-32"
#: Of the links -> images for each user: about ten seconds of work.
RATES = {"1Gbit": 2, "10Gbit": 6}
WORKERS = (1, 8)
#: Rows: name -> parameters.
ROWS: dict[str, dict[str, Any]] = {
    "stock": {"method": "stock"},
    "fastio-copying": {"method": "copying"},
    "fastio-sendfile": {"method": "sendfile"},
    "tls-stock": {"method": "stock", "tls": 1},
    "tls-fastio": {"method": "sendfile", "tls": 1},
}


def title(row: str, workers: int) -> str:
    return f"{row}-{workers}w"


def _rows() -> Iterator[Variant]:
    why_not = Network().why_not() or servers.why_not(LINKED)
    for workers in WORKERS:
        for row, parameters in ROWS.items():
            against = "tls-stock" if row.startswith("tls") else "stock"
            yield Variant(
                "network", label=title(row, workers), against=title(against, workers), skip=why_not,
                parameters={**parameters, "workers": workers},
            )  # fmt: skip


def _over(rate: str, each: int) -> Case:
    return Case(
        name=f"network-{rate}",
        title=f"{LINKED} over links of {rate}/s",
        workload="concurrency",
        variants=list(_rows()),
        parameters={"size": 64 * MIB, "objects": 2, "rate": rate, "users": 8, "each": each, "patience": 60},
        quick={"size": 100_003, "each": 3},
        rounds=3,
        warmup=0,
        baseline=title("stock", WORKERS[0]),
        unit="MiB/s",
        columns=("whole_p50_ms", "generator_cpu"),
        needs=("locust",),
        long=rate != next(iter(RATES)),
    )


# --- what is asked of it

#: The part of the most requests/s of all levels from which a service is saturated.
FULL = 0.95


def levels(result: Result) -> Iterator[tuple[str, int, CaseResult]]:
    """Service, concurrent requests, and the measured figures."""
    known = {f"{service}-{users}": (service, users) for service in SERVICES for users in LEVELS}
    for case in result.cases:
        if case.name in known:
            yield *known[case.name], case


def most_of(result: Result, service: str, server: str) -> tuple[int, float] | None:
    """Return the number of concurrent requests that saturates it, and its most requests/s."""
    rates = {users: case.median(server, RATE) for own, users, case in levels(result) if own == service}
    found = {users: value for users, value in rates.items() if value is not None}
    if not found:
        return None
    most = max(found.values())
    return min(users for users, value in found.items() if value >= FULL * most), most


def _saturated(result: Result) -> Iterator[Goal]:
    for service in SERVICES:
        before, after = (most_of(result, service, server) for server in SERVERS)
        if before and after:
            what, ratio = f"{service}: req/s where it is saturated", after[1] / before[1]
            yield Goal(what, before[1], after[1], ratio, "≥", 1, "x stock")


def _level(service: str, users: int) -> Iterator[Asked]:
    case, what = f"{service}-{users}", f"{service}, {users} concurrent"
    # From 100 concurrent requests on; as shipped, there are more.
    if users >= 100:
        yield Asked(f"{what}: req/s", "≥", 1.4 if service == SHIPPED else 1.3, key=RATE, cases=case)
    if service == SHIPPED:
        yield Asked(f"{what}: p99 ms", "≤", 1, key="whole_p99_ms", cases=case)
    yield Asked(f"{what}: success", "≥", 0, key="success_ratio", unit="more", cases=case, of=longer)


RATE = "operations_per_second"
GOALS = [
    *(goal for service in SERVICES for users in LEVELS for goal in _level(service, users)),
    _saturated,
    Asked("{case}: downloads/s at the limit", "≥", 1.3, key=RATE, cases="offered-glance-*"),
]

CASES = [
    *(_case(service, users, total) for service in SERVICES for users, total in LEVELS.items()),
    *(_glance(service) for service in (SHIPPED, "glance-32")),
    *map(_logs, ("disk", "swift")),
    *(_over(rate, each) for rate, each in RATES.items()),
]


def test_concurrency(recorded):
    recorded()
