"""Downloads from a real glance-api by Locust, with few to very many concurrent requests, every one of them recorded.

The servers run outside, for all runs of a case, and only the one that is measured has work. Their images are written
once (:func:`prepare`), with content that follows from a seed; every byte that comes is compared with it. Each request
has a separate connection.

A server that records a trace (:mod:`fastio.trace`) is asked for it afterwards: what the requests of the run spent in
each state, and how they ended as the server saw it.

Parameters beside those of :mod:`benchmarks.load.measuring`:

``server``
    name of the server among those ``beside`` the case's backend; the backend itself by default
``source``
    address that the requests come from; the server's own by default

Results: of the part that counts (:func:`benchmarks.load.analysis.window`) bytes and seconds,
``operations_per_second``, ``success_ratio``, the times of the requests, ``servers_cpu``, ``generator_cpu`` and the
``bottleneck``; ``trace`` if the server has one.
"""

import time
from collections.abc import Mapping
from typing import Any

from benchmarks.harness.worker import running, surroundings
from benchmarks.load import measuring
from benchmarks.load.plan import Names, Operation, Plan

#: Seconds for the last requests to be in the trace's file: each is written when it has ended.
TRACE_WRITTEN = 1.0


def _plan(parameters: Mapping[str, Any], access: Mapping[str, Any], kind: str, **fields: Any) -> Plan:
    server = {"url": access["url"], "source_address": parameters.get("source", "")}
    images = Names(f"r(1,{parameters['objects']})", "image-")
    operation = Operation(kind, objects=images, sizes=f"c({parameters['size']})B")
    return Plan("glance", server, (operation,), keep_alive=False, **fields)


def reading(parameters: Mapping[str, Any], access: Mapping[str, Any]) -> Plan:
    """The load itself."""
    return _plan(
        parameters, access, "read", users=parameters["users"], total=parameters["total"],
        patience=parameters["patience"], labels={"server": parameters.get("server") or "stock"},
    )  # fmt: skip


def write(parameters: Mapping[str, Any], access: Mapping[str, Any]) -> None:
    """Write the images into a server."""
    measuring.do_all(_plan(parameters, access, "write", total=parameters["objects"]))


def prepare(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Write the images into each server that runs."""
    for each in measuring.servers(surroundings()):
        write(parameters, each["access"])
    return {}


def run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """One run of the load on one of the servers."""
    told = running(parameters.get("server"))
    with measuring.Load(parameters.get("records", "")) as load:
        begun = time.time_ns()
        found = load.measured(reading(parameters, told["access"]), told["pids"])
    return {**found, **_traced(told["access"], begun)}


def _traced(access: Mapping[str, Any], begun: int) -> dict[str, Any]:
    """Return the server's trace of the requests since ``begun``, nanoseconds since 1970; empty if it has none."""
    if not access.get("trace"):
        return {}
    from fastio.trace.analysis import analysis

    time.sleep(TRACE_WRITTEN)
    found = analysis.analyse([access["trace"]])
    own = [each for each in found.requests if each.start >= begun and each.kind.name == "download"]
    outcomes = {name: sum(each.outcome == name for each in own) for name in analysis.OUTCOMES}
    states = {
        state: {"count": len(times), **{f"p{part}_ms": analysis.percentile(times, part) / 1e6 for part in (50, 99)}}
        for state, times in analysis.state_times(own).items()
    }
    return {"trace": {"requests": len(own), "outcomes": outcomes, "states": states,
                      "lost": found.trace.counts.get("lost spans", 0)}}  # fmt: skip
