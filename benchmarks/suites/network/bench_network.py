"""A client that is not local: the same load from 1 and from 8 machines, over links of 1 and 10 Gbit/s and with a delay.

The machines are network namespaces. A real glance-api, release 32, sends images by HTTP in each way that it can: stock,
and with fastio by copying, with ``sendfile()`` and from a mapping. It sends them by HTTPS too. Each run is the same
number of whole images. Where the link is the limit, the rows have the same bandwidth, and what they differ in is CPU
time.
"""

from collections.abc import Iterator
from typing import Any

from benchmarks.backends.network import Network
from benchmarks.harness import servers
from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.modes import MIB

SERVICE = "glance-32"
#: Of the links -> images for each user: about ten seconds of work.
RATES = {"1Gbit": 2, "10Gbit": 6}
WORKERS = (1, 8)
#: Milliseconds there and back, of the rows that have one.
DELAY = 20
#: Rows: name -> parameters.
ROWS: dict[str, dict[str, Any]] = {
    "stock": {"method": "stock"},
    "fastio-copying": {"method": "copying"},
    "fastio-sendfile": {"method": "sendfile"},
    "fastio-mapping": {"method": "mapping"},
    "tls-stock": {"method": "stock", "tls": 1},
    "tls-fastio": {"method": "sendfile", "tls": 1},
}
#: Of these, the rows with a delay.
DELAYED = ("stock", "fastio-sendfile")


def title(row: str, workers: int, delay: int = 0) -> str:
    return f"{row}-{workers}w{f'-{delay}ms' if delay else ''}"


def _rows() -> Iterator[Variant]:
    for delay in (0, DELAY):
        why_not = Network(delay=delay).why_not() or servers.why_not(SERVICE)
        for workers in WORKERS:
            for row, parameters in ROWS.items():
                if delay and row not in DELAYED:
                    continue
                against = "tls-stock" if row.startswith("tls") else "stock"
                yield Variant(
                    "run", label=title(row, workers, delay), against=title(against, workers, delay), skip=why_not,
                    parameters={**parameters, "workers": workers, "delay": delay},
                )  # fmt: skip


def _case(rate: str, each: int) -> Case:
    return Case(
        name=f"{SERVICE}-{rate}",
        title=f"{SERVICE} over links of {rate}/s",
        workload="network",
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


CASES = [_case(rate, each) for rate, each in RATES.items()]


def test_network(recorded):
    recorded()
