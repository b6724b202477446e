"""A real glance-api while clients read or send slowly: how long other requests wait, and what rate the clients get.

Release 33 runs under uWSGI as it is shipped (4 processes, one thread each), stock and with ``glance_slow_clients``. The
reference is nginx with the same file.

Slow uploads hold the workers with fastio, too. What is there against that is measured with stock: ``post-buffering`` of
uWSGI, and nginx in front, which takes the whole body before it asks glance.
"""

from collections.abc import Iterator

from benchmarks.backends.glance import AS_SHIPPED
from benchmarks.harness import servers
from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.modes import MIB
from benchmarks.suites.glance.bench_glance import ELSEWHERE, SHIPPED, SLOW_CLIENTS

RELEASE = "glance-33"
#: Clients at a time -> bytes a second of each, and bytes of an image.
LOADS = {4: (20 * 10**6, 128 * MIB), 200: (10**6, 32 * MIB)}
#: Seconds in which the clients start one after the other, and seconds that are measured then.
RAMP, SECONDS = 4, 10
ROWS = {"stock": "", "fastio": "fastio", "reference-nginx": "nginx"}
#: The same of uploads, of which there are as many as workers.
UPLOADS = 4
WAYS = {"stock": "", "fastio": "fastio", "stock, post-buffering": "post-buffering", "stock, nginx": "proxied"}
#: What has an upload's client send: its length, or chunks as glance's own clients do.
KINDS = {"uploads": 0, "uploads-chunked": 1}
#: Bytes from which on ``post-buffering`` uses a file, and those of its reads.
POST_BUFFERING = MIB


def name(clients: int, kind: str = "") -> str:
    """Of the case with so many clients, or with those uploads."""
    return "-".join([SHIPPED, str(clients), *([kind] if kind else [])])


def _case(clients: int) -> Case:
    rate, size = LOADS[clients]
    why_not = servers.why_not("http")
    return Case(
        name=name(clients),
        title=f"{RELEASE}, as it is shipped: {clients} clients, each at {rate / 1e6:g} MB/s",
        workload="slow_clients",
        variants=[
            Variant("run", title, {"server": server}, skip=why_not if server == "nginx" else "")
            for title, server in ROWS.items()
        ],
        parameters={
            "clients": clients, "rate": rate, "size": size, "ramp": RAMP, "seconds": SECONDS, "task": "download",
            "source": ELSEWHERE,
        },
        quick={"clients": 5, "rate": 4 * MIB, "size": MIB, "ramp": 0, "seconds": 0},
        rounds=3,
        warmup=0,
        baseline="stock",
        columns=("p50_ms", "p99_ms", "worst_ms", "served"),
        backend=RELEASE,
        backend_parameters=AS_SHIPPED,
        beside={"fastio": (RELEASE, {**AS_SHIPPED, "fastio": "on", "also": SLOW_CLIENTS}), "nginx": ("http", {})},
        prepare="prepare",
        long=clients != min(LOADS),
    )  # fmt: skip


def _uploads(kind: str) -> Case:
    rate, size = LOADS[UPLOADS]
    why_not = servers.why_not("http")
    chunked = KINDS[kind]
    return Case(
        name=name(UPLOADS, kind),
        title=f"{RELEASE}, as it is shipped: {UPLOADS} {'chunked ' * chunked}uploads, each at {rate / 1e6:g} MB/s",
        workload="slow_clients",
        variants=[
            Variant("run", title, {"server": server}, skip=why_not if server == "proxied" else "")
            for title, server in WAYS.items()
        ],
        parameters={
            "clients": UPLOADS, "rate": rate, "size": size, "ramp": RAMP, "seconds": SECONDS, "task": "upload",
            "source": ELSEWHERE, "chunked": chunked,
        },
        quick={"clients": 5, "rate": 4 * MIB, "size": MIB, "ramp": 0, "seconds": 0},
        rounds=3,
        warmup=0,
        baseline="stock",
        columns=("p50_ms", "p99_ms", "worst_ms", "temporary_mb"),
        backend=RELEASE,
        backend_parameters=AS_SHIPPED,
        beside={
            "fastio": (RELEASE, {**AS_SHIPPED, "fastio": "on"}),
            "post-buffering": (RELEASE, {**AS_SHIPPED, "post_buffering": POST_BUFFERING}),
            "proxied": (RELEASE, {**AS_SHIPPED, "proxied": 1}),
        },
        prepare="prepare",
        long=bool(chunked),
    )  # fmt: skip


def _cases() -> Iterator[Case]:
    yield from map(_case, LOADS)
    yield from map(_uploads, KINDS)


CASES = [*_cases()]


def test_slow_clients(recorded):
    recorded()
