"""Requests to a log server, for logs on its disk and in a real Swift, every one of them recorded.

Each run starts a log server of its own (:mod:`benchmarks.logserver`) and puts a load on it by Locust, in processes of
its own (:mod:`benchmarks.load`). The logs are written once for a case (:func:`prepare`), the same ones to the disk and
to Swift; their content follows from a seed, and every byte that comes is compared with it.

Parameters:

``source``
    ``"disk"``, or ``"swift"``: then the server is told to leave out the disk; ``"direct"``: there is no log server, the
    load asks Swift itself, which shows what a log server costs
``swift``
    which Swift, if it is another one than the case's backend: the name that one runs by beside it
``fastio``
    ``"on"`` or ``"off"``, in the server
``chunk``
    bytes that the server reads at a time
``users``
    requests at a time, each on a connection of its own
``total``, ``seconds``
    requests in all, or how long new ones are begun
``objects``, ``selection``
    how many logs there are; ``"each"`` one after the other, or any at ``"random"``
``size``
    bytes of a log
``records``
    the directory of the records, below ``results/records``; empty: they are not kept

Results: of the part that counts (:func:`benchmarks.load.analysis.window`), the phases' times in milliseconds as
``sent_p50_ms``, ``response_p99_ms``, ``transfer_p50_ms`` and so on; ``server_cpu_ms`` and ``swift_cpu_ms`` of a
request; ``generator_cpu``, the share of a processor that the load generator used.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.backends.base import HOST
from benchmarks.harness.modes import choice
from benchmarks.harness.worker import cache_directory, recorded, running, surroundings
from benchmarks.load import measuring
from benchmarks.load.content import Content
from benchmarks.load.plan import Operation, Plan

if TYPE_CHECKING:
    from benchmarks.backends.logserver import LogServer

#: Of the objects in Swift, and the directory below the root on the disk.
CONTAINER = "logs"
SUFFIX = ".txt"
#: In Swift the directory is part of the name.
_PREFIX = f"{CONTAINER}/object-"

#: The address of this machine for workers of the load that are on others; the log server is then open to them.
SERVER_VARIABLE = "FASTIO_LOAD_SERVER"

#: fastio's patches without which a row would not be what it says: name and module of the target.
PATCHES = (
    ("store_swift", "swiftclient.client"),
    ("green_sendall", "eventlet.greenio.base"),
)

#: Those that Swift's own servers have of it.
SERVER_PATCHES = ("green_sendall",)


def reading(parameters: Mapping[str, Any], url: str) -> Plan:
    """The load on a log server."""
    source = choice(parameters, "source", "disk", "swift")
    label = f"{source}, fastio {parameters['fastio']}, chunks of {parameters['chunk']} bytes"
    server = {"url": url, **({"source": "swift"} if source == "swift" else {})}
    return _read(parameters, protocol="logs", server=server, labels={"server": label})


def reading_directly(parameters: Mapping[str, Any], access: Mapping[str, Any]) -> Plan:
    """The same load on Swift itself."""
    return _read(parameters, protocol="swift", server=_login(access), prefix=_PREFIX, labels={"server": "Swift itself"})


def _read(parameters: Mapping[str, Any], **fields: Any) -> Plan:
    operation = Operation("read", count=parameters["objects"], selection=parameters.get("selection", "each"))
    return Plan(
        operations=(operation,), users=parameters["users"], total=parameters.get("total", 0),
        seconds=parameters.get("seconds", 0), container=CONTAINER, suffix=SUFFIX, size=parameters["size"],
        keep_alive=False, **fields,
    )  # fmt: skip


def _login(access: Mapping[str, Any]) -> dict[str, Any]:
    return {key: access[key] for key in ("auth_v1", "user", "key")}


def writing(parameters: Mapping[str, Any], access: Mapping[str, Any]) -> Plan:
    """What puts the same logs into Swift."""
    return Plan(
        protocol="swift", server=_login(access), operations=(Operation("write", count=parameters["objects"]),),
        total=parameters["objects"], container=CONTAINER, prefix=_PREFIX, suffix=SUFFIX,
        size=parameters["size"],
    )  # fmt: skip


def prepare(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Write the logs to the disk and into each Swift; what is on the disk stays for later runs of the same size."""
    from benchmarks.load import protocols

    told = surroundings()
    plan = writing(parameters, told["access"])
    content = Content(plan)
    root = cache_directory() / f"random-logs-{plan.size}-{plan.seed}"
    (root / CONTAINER).mkdir(parents=True, exist_ok=True)
    for number in range(parameters["objects"]):
        _write(root / plan.name(number), content, number)
    for each in measuring.servers(told):
        plan = writing(parameters, each["access"])
        protocols.once(plan).make_container(plan.container)
        measuring.do_all(plan)
    return {"root": str(root)}


def _write(path: Path, content: Content, number: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size == content.size:
            return
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    with open(partial, "wb") as file:
        for piece in content.pieces(number):
            file.write(piece)
    os.replace(partial, path)


def run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """One run: a log server if there is one, and a load on it."""
    told = surroundings()
    swift = _swift(parameters, told)
    with contextlib.ExitStack() as stack:
        # It gets ready while the server does.
        load = stack.enter_context(measuring.Load(parameters.get("records", "")))
        pids = {"swift_cpu_ms": swift["pids"]}
        details = {}
        if choice(parameters, "source", "disk", "swift", "direct") == "direct":
            plan = reading_directly(parameters, swift["access"])
        else:
            server = stack.enter_context(log_server(parameters, told["prepared"]["root"], swift["access"]))
            if server.status is not None:
                check_patched(server.status)
                details["fastio"] = recorded(server.status)
            pids["server_cpu_ms"] = server.pids()
            plan = reading(parameters, server.access()["url"])
        found = load.measured(plan, [pid for own in pids.values() for pid in own])
        processes = found["usage"]["processes"]
        # Of the measured part only: Swift uses some CPU time even without requests.
        milliseconds = found["seconds"] * 1000 / found["operations"]
        spent = {
            name: sum(each["cpu"] for each in processes if set(own) & set(each["pids"])) * milliseconds
            for name, own in pids.items()
        }
        # No column shows what has failed.
        return {**found, **spent, **details, "verified": found["verified"] and not found["failed"]}


def _swift(parameters: Mapping[str, Any], told: Mapping[str, Any]) -> Mapping[str, Any]:
    """``access`` and ``pids`` of the Swift of this row.

    :raises RuntimeError: if it does not run, or not as the row says
    """
    found = running(parameters.get("swift"), told)
    if "swift" in parameters and parameters["fastio"] == "on":
        for server, patches in found["access"]["patched"].items():
            missing = set(SERVER_PATCHES) - set(patches)
            if missing:
                raise RuntimeError(f"fastio's {', '.join(sorted(missing))} is not in effect in Swift's {server} server")
    return found


def log_server(parameters: Mapping[str, Any], root: str, access: Mapping[str, Any]) -> LogServer:
    """The log server of a row, which begins and ends as a context.

    :param root: directory of the logs on disk
    :param access: how to reach the Swift that has the same logs
    """
    from benchmarks.backends.logserver import LogServer

    return LogServer(
        fastio=choice(parameters, "fastio", "off", "on"), root=root, chunk_size=parameters["chunk"],
        swift=json.dumps(_login(access) | {"container": CONTAINER}), host=os.environ.get(SERVER_VARIABLE, HOST),
    )  # fmt: skip


def check_patched(status: Mapping[str, Any]) -> None:
    """Check that fastio's patches are in effect in the server.

    :raises RuntimeError: if one is not: stock under the name of fastio would be a wrong result
    """
    for name, module in PATCHES:
        outcomes = [
            each["outcome"] for each in status["patches"] if each["name"] == name and each["target"].startswith(module)
        ]
        if not outcomes or set(outcomes) - {"applied"}:
            raise RuntimeError(f"fastio's {name} is not applied to {module} in the log server: {outcomes}")


VARIANTS = {"prepare": prepare, "run": run}
