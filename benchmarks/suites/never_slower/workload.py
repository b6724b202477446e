"""An operation, stock and with fastio, pair by pair (:mod:`benchmarks.suites.never_slower.pairs`).

The processes of a pair are made ready once, and so are the servers that they use: the backend of the case, a plain
server for clients, or, over a link, two glance-api on one machine of a network of namespaces, whose
clients are on another one.

Parameters:

``operation``, ``mode``
    one of :data:`benchmarks.operations.catalogue.OPERATIONS`; ``"native"`` or ``"eventlet"``
``size``
    bytes of large data; each of many concurrent calls has the 16th part of it
``many``
    concurrent calls, where there are several
``busy``
    processes that compute beside in half of the cells; 0: there is no such half
``seconds``, ``least``
    for the pairs of a cell that is not decided earlier, and the fewest pairs
``traced``
    1: both sides are the same client of the case's glance-api; as the first it asks not to be recorded in the trace.
    There is no small data
``most``
    pairs of a cell, if it is not decided earlier
``link``, ``release``, ``server``
    the rate of a link such as ``"1Gbit"``, the glance-api that serves over it, and the parameters of its backend

Results: ``pairs``, for each cell the seconds of each batch of both sides; ``cells``, and how many of them are
``slower`` and ``faster`` with fastio, or a trace; ``lowest``, the lowest ratio of all cells.
"""

import contextlib
import functools
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.backends import backend
from benchmarks.backends.network import CLIENT, SERVER, Network
from benchmarks.harness.modes import MODES, choice, warmed
from benchmarks.harness.worker import digests, memory_directory, random_payload, running, surroundings
from benchmarks.load import limits
from benchmarks.operations import servers
from benchmarks.operations.services import Glance, given
from benchmarks.operations.stores import opened_store
from benchmarks.suites.never_slower import pairs
from benchmarks.suites.never_slower.peer import Half, Peer

#: Of a pair: its name, and the process's parameters.
SIDES = {"stock": {"fast": False}, "fastio": {"fast": True}}
#: Of a trace, the headers of both sides. They are one process: two of the same program may differ by a percent.
TRACED: dict[str, dict[str, str]] = {"untraced": {"X-Trace": "off"}, "traced": {}}
#: Operations whose server is the plain one.
PLAIN = (
    "upload-file", "upload-memory", "swiftclient-put", "glanceclient", "openstacksdk-image", "openstacksdk-object",
)  # fmt: skip


def run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """All cells of an operation."""
    choice(parameters, "mode", "native", "eventlet")
    for size in pairs.sizes(parameters):
        warmed(random_payload(size))
    begun = time.perf_counter()
    said: dict[str, Any] = {}
    with _around(parameters) as start:
        budget = pairs.Budget(**{name: parameters[name] for name in pairs.Budget._fields if name in parameters})
        found, verified = pairs.measure(functools.partial(start, said), pairs.cells(parameters), budget)
    intervals = [pairs.interval(record) for record in found]
    return {
        **said,
        "seconds": time.perf_counter() - begun,
        "verified": verified,
        "cells": len(found),
        "slower": sum(pairs.verdict(record) == pairs.SLOWER for record in found),
        "faster": sum(each.low > 1 for each in intervals),
        "lowest": min(each.ratio for each in intervals),
        "pairs": found,
    }


@contextlib.contextmanager
def _around(parameters: Mapping[str, Any]) -> Iterator[Any]:
    """The servers of an operation; yields what starts the two sides, which is given a place for what they say."""
    operation = parameters["operation"]
    with contextlib.ExitStack() as stack:
        if parameters.get("link"):
            yield stack.enter_context(_over_a_link(parameters))
            return
        told: dict[str, dict[str, Any]] = {name: {**each} for name, each in SIDES.items()}
        if parameters.get("traced"):
            stack.enter_context(_apart(surroundings()["pids"]))
            yield functools.partial(_halves, parameters)
            return
        if operation in PLAIN:
            port = stack.enter_context(servers.running("plain", MODES["native-stock"]))
            for each in told.values():
                each.update(url=f"http://127.0.0.1:{port}", size=parameters["many"] * parameters["size"])
        elif operation == "store-get":
            for each in told.values():
                each["images"] = surroundings()["prepared"]["images"]
        elif operation.startswith("glance-"):
            for each in told.values():
                known_by = "fastio" if each["fast"] else ""
                each["access"] = running(known_by or None)["access"]
                each["places"] = surroundings()["prepared"]["places"].get(known_by)
        yield functools.partial(_sides, parameters, told)


@contextlib.contextmanager
def _sides(
    parameters: Mapping[str, Any], told: Mapping[str, Mapping[str, Any]], said: dict[str, Any], prefix: Any = list
) -> Iterator[pairs.Sides]:
    """The two processes, ready."""
    with contextlib.ExitStack() as stack:
        green = parameters["mode"] == "eventlet"
        made = {
            name: stack.enter_context(Peer({"operation": parameters["operation"], "green": green, **each}, prefix))
            for name, each in told.items()
        }
        for each in made.values():
            said.update(each.ready())
        yield made


@contextlib.contextmanager
def _halves(parameters: Mapping[str, Any], said: dict[str, Any]) -> Iterator[pairs.Sides]:
    """A client that is both sides."""
    places = surroundings()["prepared"]["places"][""]
    told = {"operation": parameters["operation"], "green": False, "fast": False, "places": places, "headers": TRACED}
    with Peer(told) as peer:
        said.update(peer.ready())
        yield {name: Half(peer, name) for name in TRACED}


@contextlib.contextmanager
def _over_a_link(parameters: Mapping[str, Any]) -> Iterator[Any]:
    """Run two glance-api on one machine of a network, and the pair on another one."""
    network = Network(rate=parameters["link"])
    release = backend(parameters["release"])
    with contextlib.ExitStack() as stack:
        stack.enter_context(network)
        address = network.address(SERVER)
        told: dict[str, dict[str, Any]] = {}
        with network.inside(SERVER):
            for name, each in SIDES.items():
                own = {**parameters["server"], "host": address, "fastio": "on" if each["fast"] else "off"}
                access = stack.enter_context(release(memory_directory(parameters["size"]), **own)).access()
                told[name] = {**each, "places": given_images(access, parameters)}
        yield functools.partial(_sides, parameters, told, prefix=functools.partial(network.command, CLIENT.format(1)))


@contextlib.contextmanager
def _apart(pids: Sequence[int]) -> Iterator[None]:
    """This process on one processor, and all threads of a server on another, if there are two.

    Else the times have two modes, by where the kernel puts the two.
    """
    with contextlib.ExitStack() as stack:
        # This one last: the cores that it may use are those that there are.
        for own, core in zip((pids, [os.getpid()]), sorted(os.sched_getaffinity(0))[1::-1], strict=False):
            stack.enter_context(limits.pinned(own, {core}))
        yield


def given_images(access: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, str]:
    """Give a glance-api an image of each size; returns where their data are."""
    service, places = Glance(access), {}
    for size in pairs.sizes(parameters):
        payload = random_payload(size)
        places[str(size)] = service.place(given(service, payload, digests(payload).multihash))
    return places


def prepare(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Put an image of each size where it is read: into the store, or into each glance-api."""
    told, operation = surroundings(), parameters["operation"]
    if operation == "store-get":
        with opened_store(MODES["native-stock"], {}) as store:
            sizes = pairs.sizes(parameters)
            return {"images": {size: store.place(random_payload(size).path.read_bytes()) for size in sizes}}
    if operation == "glance-download":
        servers_ = {name: running(name or None, told)["access"] for name in ("", *told["beside"])}
        return {"places": {name: given_images(access, parameters) for name, access in servers_.items()}}
    return {"places": {}}


VARIANTS = {"pairs": run, "prepare": prepare}
