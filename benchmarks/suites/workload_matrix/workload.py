"""The workload matrix: object size x workers x reads to writes on a real Swift, with what the servers use.

A case is one object size; its objects are written once (:func:`prepare`: COSBench's stages init and prepare) and
deleted after the last workload (:func:`finish`: cleanup and dispose). Each run is one workload, the stage main. While
it goes on, this machine and every process of the servers are sampled, so for each workload is known which resource was
used up.

Parameters beside those of :mod:`benchmarks.load.measuring`:

``workers``
    that do one operation after the other
``reads``
    percent of the operations that read; the others write
``objects``
    that are read, and as many others that are written
``processors``
    what the servers have: ``all``, ``core`` (all of them pinned to one), or a number: the processors' time that they
    may use together (:mod:`benchmarks.load.limits`)
``rate``
    bytes a second of the network path to the servers (:mod:`benchmarks.load.path`); 0: any
``think``
    seconds that a worker waits after an operation

Results: bandwidth from ``bytes`` and ``seconds``, ``operations_per_second``, ``success_ratio``, times in milliseconds
as ``whole_p50_ms``, and of :func:`benchmarks.load.report.usage_figures` what was used; ``bottleneck`` in words.
"""

import contextlib
import os
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.harness.worker import surroundings
from benchmarks.load import measuring
from benchmarks.load.plan import Names, Operation, Plan

CONTAINERS = Names("r(1,1)", "matrix")
PREFIX = "object"


def plan(access: Mapping[str, Any], *operations: Operation, **fields: Any) -> Plan:
    return Plan("swift", {key: access[key] for key in ("auth_v1", "user", "key")}, operations, **fields)


def written(first: int, parameters: Mapping[str, Any], scan: bool) -> Operation:
    """Objects from a number on are written."""
    last = first + parameters["objects"] - 1
    return Operation(
        "write", 100 - parameters.get("reads", 0), containers=CONTAINERS,
        objects=Names(f"{'r' if scan else 's'}({first},{last})", PREFIX), sizes=f"c({parameters['size']})B", scan=scan,
    )  # fmt: skip


def main_plan(parameters: Mapping[str, Any], access: Mapping[str, Any]) -> Plan:
    """The workload itself."""
    objects, reads = parameters["objects"], parameters["reads"]
    operations = []
    if reads:
        operations.append(Operation("read", reads, containers=CONTAINERS, objects=Names(f"u(1,{objects})", PREFIX)))
    if reads < 100:
        operations.append(written(objects + 1, parameters, scan=False))
    labels = {key: parameters[key] for key in ("size", "reads", "processors", "rate")}
    return plan(
        access, *operations, users=parameters["workers"], seconds=parameters["seconds"], think=parameters["think"],
        labels=labels,
    )  # fmt: skip


def prepare(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Make the container and write what is read."""
    writing = written(1, {**parameters, "reads": 0}, scan=True)
    chosen = plan(surroundings()["access"], writing, total=writing.scanned)
    measuring.do_all(chosen, make=CONTAINERS.name(1))
    return {}


def finish(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Delete the objects and remove the container."""
    objects = Names(f"r(1,{2 * parameters['objects']})", PREFIX)
    deleting = Operation("delete", containers=CONTAINERS, objects=objects, scan=True)
    chosen = plan(surroundings()["access"], deleting, total=deleting.scanned)
    measuring.do_all(chosen, remove=CONTAINERS.name(1), gone=404)
    return {}


def run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """One workload."""
    from benchmarks.load.bottleneck import Limits

    told = surroundings()
    with (
        measuring.Load(parameters.get("records", "")) as load,
        _path(told["access"], parameters["rate"]) as access,
        _limited(told["pids"], parameters["processors"]) as (processors, how),
    ):
        limits = Limits(processors, how, parameters["rate"], parameters["workers"], parameters["think"])
        chosen = main_plan(parameters, access)
        return {**load.measured(chosen, told["pids"], limits), "limit": how}


@contextlib.contextmanager
def _limited(pids: list[int], processors: str) -> Iterator[tuple[float, str]]:
    """Have the servers do with less; yields the processors that they have together (0: all), and how."""
    from benchmarks.load import limits

    if processors == "all":
        yield 0.0, ""
    elif processors == "core":
        with limits.pinned(pids, {min(os.sched_getaffinity(0))}) as how:
            yield 1.0, how
    else:
        with limits.quota(pids, float(processors)) as how:
            yield float(processors), how


@contextlib.contextmanager
def _path(access: Mapping[str, Any], rate: float) -> Iterator[dict[str, Any]]:
    """The access by way of a path of a rate."""
    if not rate:
        yield dict(access)
        return
    from benchmarks.load import path

    url = urllib.parse.urlsplit(access["url"])
    assert url.hostname and url.port
    with path.slowed(url.hostname, url.port, rate) as address:
        yield {
            key: value.replace(url.netloc, address) if isinstance(value, str) else value
            for key, value in access.items()
        }


VARIANTS = {"prepare": prepare, "finish": finish, "run": run}
