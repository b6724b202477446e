"""The offered load at which the 99th percentile passes 500 ms, of a real glance-api and a log server, stock and fastio.

Downloads are due at random moments, as from independent clients, at one rate after the other. Times count from when a
download was due, so a server that stalls cannot slow down who measures it. What is compared is the rate at which the
99th percentile reaches the limit, as the bytes that are asked for in a second.
"""

from collections.abc import Mapping
from typing import Any

from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.modes import MIB
from benchmarks.suites.concurrency.bench_concurrency import SERVICES as GLANCES
from benchmarks.suites.disk_swift.bench_disk_swift import LOG, SOURCES
from benchmarks.suites.glance.bench_glance import ELSEWHERE, SHIPPED

SERVERS = ("stock", "fastio")
#: Milliseconds.
LIMIT = 500
#: Each rate is the last one times this.
FACTOR = 1.25
#: Downloads at the same time, at the most: as many as no service here carries within the limit.
USERS = 200
#: Of a smoke run: two rates, of which the second is the last.
QUICK = {"lowest": 5, "highest": 6, "seconds": 1, "objects": 2, "size": MIB // 8}
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


def _case(name: str, title: str, rows: Mapping[str, Mapping[str, Any]], own: Mapping[str, Any], **fields: Any) -> Case:
    return Case(
        name=name, title=f"{title}: offered load with p99 at {LIMIT} ms", workload="offered_load",
        variants=[Variant("run", label=server, parameters=rows[server], against="stock") for server in SERVERS],
        parameters={**SEARCH, **own}, rounds=5, warmup=0, baseline="stock", unit="MiB/s", timeout=600, quick=QUICK,
        columns=("operations_per_second", "p50_ms", "generator_cpu"), prepare="prepare", needs=("locust",), **fields,
    )  # fmt: skip


def _glance(service: str) -> Case:
    release, settings = GLANCES[service]
    return _case(
        service, f"{service}, downloads of 16 MiB", {"stock": {"server": ""}, "fastio": {"server": "fastio"}}, _IMAGES,
        backend=release, backend_parameters=settings, beside={"fastio": (release, {**settings, "fastio": "on"})},
        long=service != "glance-32",
    )  # fmt: skip


def _logs(source: str) -> Case:
    rows = {server: {"fastio": "on" if server == "fastio" else "off"} for server in SERVERS}
    return _case(
        f"logs-{source}", f"log server, logs of 1.2 MB on {source}", rows,
        {**_LOGS, **SOURCES[source], **_RATES[source]},
        backend="swift", long=source != "disk",
    )  # fmt: skip


CASES = [_glance(SHIPPED), _glance("glance-32"), _logs("disk"), _logs("swift")]


def test_offered_load(recorded):
    recorded()
