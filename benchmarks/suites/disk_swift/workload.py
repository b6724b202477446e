"""Requests to a log server, for logs on its disk and in a real Swift, every one of them recorded.

Each run starts a separate log server (:mod:`benchmarks.logserver`) and puts a load on it by Locust, in separate
processes (:mod:`benchmarks.load`). The logs are written once for a case (:func:`prepare`), the same ones to the disk
and to Swift; their content follows from a seed, and every byte that comes is compared with it.

Parameters beside those of :mod:`benchmarks.load.measuring`:

``source``
    ``"disk"``, or ``"swift"``: then the server leaves out the disk; ``"direct"``: there is no log server, the
    load asks Swift itself, which shows what a log server costs
``swift``
    which Swift, if it is another one than the case's backend: the name that one runs by beside it
``fastio``
    ``"on"`` or ``"off"``, in the server
``chunk``
    bytes of the server's reads
``selection``
    of the logs: ``"each"`` one after the other, or any at ``"random"``

Results: of the part that counts (:func:`benchmarks.load.analysis.window`), the phases' times in milliseconds as
``sent_p50_ms``, ``response_p99_ms``, ``transfer_p50_ms`` and so on; ``server_cpu_ms`` and ``swift_cpu_ms`` of a
request; ``generator_cpu``, the share of a processor that the load generator used.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.backends.base import HOST
from benchmarks.harness.modes import choice
from benchmarks.harness.worker import cache_directory, recorded, running, surroundings
from benchmarks.load import measuring
from benchmarks.load.content import Content
from benchmarks.load.plan import Names, Operation, Plan
from benchmarks.load.schedule import Schedule, Step

if TYPE_CHECKING:
    from benchmarks.backends.logserver import LogServer

#: Of the objects in Swift, and the directory below the root on the disk.
CONTAINER = Names("c(1)", "logs")

#: The address of this machine for workers of the load that are on others; the log server is then open to them.
SERVER_VARIABLE = "FASTIO_LOAD_SERVER"

#: fastio's patches without which a row would not be what it says: name and module of the target.
PATCHES = (
    ("store_swift", "swiftclient.client"),
    ("green_sendall", "eventlet.greenio.base"),
)

#: Those that Swift's own servers have of it.
SERVER_PATCHES = ("green_sendall",)


def _plan(parameters: Mapping[str, Any], kind: str, protocol: str, server: dict[str, Any], **fields: Any) -> Plan:
    chosen = "u" if kind == "read" and parameters.get("selection", "each") == "random" else "r"
    # In Swift the directory is part of the name.
    prefix = f"{CONTAINER.name(1)}/object-" if protocol == "swift" else "object-"
    logs = Names(f"{chosen}(1,{parameters['objects']})", prefix, ".txt")
    operation = Operation(kind, containers=CONTAINER, objects=logs, sizes=f"c({parameters['size']})B")
    return Plan(protocol, server, (operation,), **fields)


def reading(parameters: Mapping[str, Any], url: str) -> Plan:
    """The load on a log server."""
    source = choice(parameters, "source", "disk", "swift")
    label = f"{source}, fastio {parameters['fastio']}, chunks of {parameters['chunk']} bytes"
    server = {"url": url, **({"source": "swift"} if source == "swift" else {})}
    return _reading(parameters, "logs", server, label)


def reading_directly(parameters: Mapping[str, Any], access: Mapping[str, Any]) -> Plan:
    """The same load on Swift itself."""
    return _reading(parameters, "swift", _login(access), "Swift itself")


def _reading(parameters: Mapping[str, Any], protocol: str, server: dict[str, Any], label: str) -> Plan:
    return _plan(
        parameters, "read", protocol, server, users=parameters["users"], total=parameters.get("total", 0),
        seconds=parameters.get("seconds", 0), keep_alive=False, labels={"server": label},
    )  # fmt: skip


def _login(access: Mapping[str, Any]) -> dict[str, Any]:
    return {key: access[key] for key in ("auth_v1", "user", "key")}


def writing(parameters: Mapping[str, Any], access: Mapping[str, Any]) -> Plan:
    """The command that puts the same logs into Swift."""
    return _plan(parameters, "write", "swift", _login(access), total=parameters["objects"])


def prepare(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Write the logs to the disk and into each Swift; what is on the disk stays for later runs of the same size."""
    told = surroundings()
    plan = writing(parameters, told["access"])
    content = Content(plan)
    root = cache_directory() / f"random-logs-{parameters['size']}-{plan.seed}"
    (root / CONTAINER.name(1)).mkdir(parents=True, exist_ok=True)
    for step in Schedule(plan).share(0, 1):
        _write(root / step.name, content, step)
    for each in measuring.servers(told):
        measuring.do_all(writing(parameters, each["access"]), make=CONTAINER.name(1))
    return {"root": str(root)}


def _write(path: Path, content: Content, step: Step) -> None:
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size == step.size:
            return
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    with open(partial, "wb") as file:
        for piece in content.pieces(step.number, step.size):
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
        # No column shows failures.
        return {**found, **spent(found, pids), **details, "verified": found["verified"] and not found["failed"]}


def spent(found: Mapping[str, Any], pids: Mapping[str, Collection[int]]) -> dict[str, float]:
    """Return the CPU time of processes for each request, in milliseconds.

    Only that in the measured part: Swift uses some even without requests. If that part is too short for a sample of the
    processes, there is no figure.

    :param pids: of the processes, by the name of the figure
    """
    if "usage" not in found:
        return {}
    processes, milliseconds = found["usage"]["processes"], found["seconds"] * 1000 / found["operations"]
    return {
        name: sum(each["cpu"] for each in processes if set(own) & set(each["pids"])) * milliseconds
        for name, own in pids.items()
    }


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
        swift=json.dumps(_login(access) | {"container": CONTAINER.name(1)}), host=os.environ.get(SERVER_VARIABLE, HOST),
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
