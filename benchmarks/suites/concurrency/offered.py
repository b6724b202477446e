"""Downloads at a rate that grows until the 99th percentile passes a limit: a real glance-api, or a log server.

The load is an open loop (:mod:`benchmarks.load.schedule`): a Poisson process says when each download is due, and its
time counts from then. A rate is too much if the 99th percentile is above the limit, or if more than one download in a
hundred fails, twice in a row: one hiccup of the machine does not end the search. Of the two the better one counts.
The rate at which the limit is reached lies between the last two rates; it is interpolated, with the logarithm of the
time over the logarithm of the rate.

Parameters beside those of :mod:`benchmarks.load.measuring`:

``kind``
    ``"glance"`` or ``"logs"``
``server``
    of glance: name of the server among those ``beside`` the case's backend; the backend itself by default
``source``
    of glance: address that the downloads come from, as those of another host do; the server's own by default
``source``, ``fastio``, ``chunk``
    of the log server, as in :mod:`benchmarks.suites.disk_swift.workload`
``lowest``, ``factor``, ``highest``
    the first rate (downloads a second), what a rate is multiplied by to get the next one, and where to stop
``limit``
    milliseconds
``seconds``
    for which each rate is offered
``processes``
    worker processes of the load, unless ``FASTIO_LOAD_PROCESSES`` says how many; by default one process does it all

Results: ``bytes`` that are asked for in ``seconds`` at the limit, and ``operations_per_second`` the same in downloads;
``p50_ms`` and ``generator_cpu`` at the last rate below it; ``p99_ms_N`` at the N-th rate, from 0.
"""

import contextlib
import dataclasses
import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from benchmarks.harness.modes import choice
from benchmarks.harness.worker import recorded, running, surroundings
from benchmarks.load import measuring
from benchmarks.load.plan import Plan
from benchmarks.suites.concurrency import images
from benchmarks.suites.disk_swift import workload as logs

#: Part of the downloads that may fail.
FAILURES = 0.01
#: Of ``python -m benchmarks.load run``.
PROCESSES_VARIABLE = "FASTIO_LOAD_PROCESSES"


class Trial(NamedTuple):
    """The observations at a rate; times in milliseconds."""

    rate: float
    p50: float
    #: infinite if too many have failed, of which there is no time
    p99: float
    generator_cpu: float
    #: nothing that arrived was wrong
    verified: bool


def rates(parameters: Mapping[str, Any]) -> Iterator[float]:
    """Those that are offered, in downloads a second."""
    lowest, factor = parameters["lowest"], parameters["factor"]
    every = (lowest * factor**number for number in itertools.count())
    return itertools.takewhile(lambda rate: rate <= parameters["highest"], every)


def search(offer: Callable[[float], Trial], parameters: Mapping[str, Any]) -> list[Trial]:
    """One trial for each rate, up to the first one that is too much, or the highest."""
    found = []
    for rate in rates(parameters):
        trial = offer(rate)
        if trial.p99 > parameters["limit"]:
            trial = min(trial, offer(rate), key=lambda each: each.p99)
        found.append(trial)
        if trial.p99 > parameters["limit"]:
            break
    return found


def reached(trials: list[Trial], limit: float) -> float:
    """The rate at which the 99th percentile is at the limit, in downloads a second.

    The highest rate, if it is nowhere above; the lowest one, if that is too much already.
    """
    last = trials[-1]
    if last.p99 <= limit or len(trials) == 1:
        return last.rate
    before = trials[-2]
    # A failed request has taken longer than anything that can be measured: nothing is between the two.
    if math.isinf(last.p99):
        return before.rate
    part = math.log(limit / before.p99) / math.log(last.p99 / before.p99)
    return before.rate * (last.rate / before.rate) ** part


def prepare(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Write the images into each server that runs, or the logs."""
    kind = choice(parameters, "kind", "glance", "logs")
    return images.prepare(parameters) if kind == "glance" else logs.prepare(parameters)


def run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """One search."""
    with contextlib.ExitStack() as stack:
        details: dict[str, Any] = {}
        if choice(parameters, "kind", "glance", "logs") == "glance":
            plan = images.reading({**parameters, "total": 1}, running(parameters.get("server"))["access"])
        else:
            told = surroundings()
            server = stack.enter_context(logs.log_server(parameters, told["prepared"]["root"], told["access"]))
            if server.status is not None:
                logs.check_patched(server.status)
                details["fastio"] = recorded(server.status)
            plan = logs.reading(parameters, server.access()["url"])
        trials = search(lambda rate: _offer(plan, rate, parameters), parameters)
    rate = reached(trials, parameters["limit"])
    below = trials[-2] if len(trials) > 1 and trials[-1].p99 > parameters["limit"] else trials[-1]
    return {
        "bytes": round(rate * parameters["size"]), "seconds": 1.0, "operations_per_second": rate,
        "p50_ms": below.p50, "generator_cpu": below.generator_cpu, "verified": all(each.verified for each in trials),
        **{f"p99_ms_{number}": each.p99 for number, each in enumerate(trials) if math.isfinite(each.p99)}, **details,
    }  # fmt: skip


def _offer(plan: Plan, rate: float, parameters: Mapping[str, Any]) -> Trial:
    from benchmarks.load import report

    chosen = dataclasses.replace(
        plan, rate=rate, seconds=parameters["seconds"], patience=parameters["patience"], users=parameters["users"],
        total=0,
    )  # fmt: skip
    with measuring.Load(environment={PROCESSES_VARIABLE: str(parameters.get("processes", 0)), **os.environ}) as load:
        found = load.run(chosen)
    figures = report.figures(found)
    enough = figures["success_ratio"] >= 1 - FAILURES
    return Trial(
        rate, figures.get("from_due_p50_ms", math.inf), figures["from_due_p99_ms"] if enough else math.inf,
        figures["generator_cpu"], figures["verified"],
    )  # fmt: skip
