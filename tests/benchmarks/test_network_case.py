"""The suite of loads over a network: what its rows are, what its table says of them, and small runs of them."""

import collections
import dataclasses
import importlib.util
from pathlib import Path

import pytest

from benchmarks.backends.logserver import LogServer
from benchmarks.backends.network import SERVER, Network
from benchmarks.harness import results
from benchmarks.load import measuring
from benchmarks.load.bottleneck import Limits, find
from benchmarks.load.content import Content
from benchmarks.load.plan import Names, Operation, Plan
from benchmarks.load.schedule import Schedule
from benchmarks.load.usage import Usage
from benchmarks.suites.concurrency import network, tables
from tests.backends.required import missing
from tests.benchmarks import samples
from tests.conftest import with_services

pytestmark = with_services


def test_a_link_that_is_full_is_the_limit() -> None:
    """The links count whole packets, so a full one carries a little less of the images' bytes."""
    found = find(
        Usage(1.0),
        {"bytes": 113 << 20, "seconds": 1.0, "generator_cpu": 0.2, "whole_p50_ms": 10.0},
        Limits(rate=Network(rate="1Gbit").rate, users=8),
    )
    assert str(found) == "path of the network path: 113.0 of 119.2 MiB/s"


def test_workers_on_other_machines_share_a_load(tmp_path: Path) -> None:
    if importlib.util.find_spec("locust") is None:
        pytest.skip("needs the extra 'load'")
    if reason := Network().why_not() or LogServer().why_not():
        missing(Network.name, reason)
    read = Operation("read", objects=Names("r(1,10)"), sizes="c(100003)B")
    plan = Plan("logs", {}, (read,), users=4, total=40)
    (tmp_path / "load1").mkdir()
    for step in Schedule(plan).share(0, 1):
        (tmp_path / "load1" / step.name).write_bytes(b"".join(Content(plan).pieces(step.number, step.size)))
    with (
        Network(clients=2, rate="1Gbit") as machines,
        machines.inside(SERVER),
        LogServer(root=str(tmp_path), host=machines.address(SERVER)) as server,
        measuring.Load(environment=network.distributed(machines)) as load,
    ):
        network.start_workers(machines)
        found = load.run(dataclasses.replace(plan, server={"url": server.access()["url"]}))
    assert not found.doubts and not found.errors
    assert collections.Counter((found.operations.user >> 32).tolist()) == {0: 20, 1: 20}


def row(seconds: float, cpu: float, resource: str) -> results.VariantResult:
    made = samples.variant([seconds] * 3)
    for run in made.runs:
        run |= {"bytes": 1 << 30, "server_cpu_seconds": cpu, "machine_cpu_seconds": 2 * cpu, "whole_p50_ms": 80.0}
    made.details["shares"] = {"resource": resource, "text": f"{resource} of it: figures"}
    return made


def test_the_table_says_what_the_limit_is() -> None:
    variants = {"stock-1w": row(8, 3, "path"), "fastio-sendfile-1w": row(4, 1.5, "none")}
    case = samples.case(
        variants, name="glance-32-1Gbit", workload="concurrency", unit="MiB/s", parameters={"rate": "1Gbit"}
    )
    *_, table = tables.judgement(samples.result(case, suite="concurrency"))
    assert [line[1:] for line in table.rows] == [
        ["stock-1w", "128", "1", "3", "1", "6", "path", "path of it: figures"],
        ["fastio-sendfile-1w", "256", "2 (2–2)", "1.5", "0.5 (0.5–0.5)", "3", "none", "none of it: figures"],
    ]
