"""An operation in a fresh process, one call after the other, or so many at once.

Moved bytes are only counted. The bytes of one more call, which is not measured, are hashed.

Parameters:

``operation``
    one of :data:`benchmarks.operations.catalogue.OPERATIONS`, which has further parameters
``size``
    bytes of a call
``calls``, ``at_once``
    calls of each of those who call, and how many these are; under eventlet they are greenlets
``first``
    bytes of a call that comes before the measured ones, so that imports and the connection are not measured
``heartbeat``
    1: with the lateness of a greenlet that is to run every millisecond (:mod:`benchmarks.harness.probes`)
``url``
    ``"plain"``: the plain server of :mod:`benchmarks.operations.servers` runs meanwhile, another process
``settings``
    of fastio

With the parameter ``task``, :mod:`benchmarks.suites.processes.commands` runs instead.
"""

import contextlib
import functools
from collections.abc import Mapping
from typing import Any

from benchmarks.harness import probes
from benchmarks.harness.modes import KIB, MIB, MODES, Mode, variants, warmed
from benchmarks.operations import servers
from benchmarks.operations.base import Crowd
from benchmarks.operations.catalogue import OPERATIONS
from benchmarks.operations.processes import PEERS
from benchmarks.suites.processes import commands


def require_memory(size: int) -> None:
    """Check that so many bytes of memory are available. Otherwise the kernel might kill a process.

    :raises MemoryError: if they are not
    """
    with open("/proc/meminfo") as file:
        available = next(int(line.split()[1]) * KIB for line in file if line.startswith("MemAvailable:"))
    if size > available:
        raise MemoryError(f"needs {size // MIB} MiB of memory, available are {available // MIB}: take fewer or smaller")


def run(mode: Mode, parameters: Mapping[str, Any]) -> dict[str, Any]:
    if "task" in parameters:
        return commands.run(mode, parameters)
    size, at_once, calls = parameters["size"], parameters.get("at_once", 1), parameters.get("calls", 1)
    # Stock has each output twice, and the transfers end at about the same time.
    require_memory(2 * at_once * size)
    with contextlib.ExitStack() as stack:
        context = dict(parameters)
        if parameters.get("url") == "plain":
            port = stack.enter_context(servers.running("plain", MODES["native-stock"]))
            context["url"] = f"http://127.0.0.1:{port}"
        work = stack.enter_context(OPERATIONS[parameters["operation"]](mode, context))
        payload = warmed(work.payload(size))
        if first := parameters.get("first"):
            work.once(first)
        crowd = Crowd(mode.green and not work.threads)
        work.before(size, at_once * calls)
        with probes.measured(bool(parameters.get("heartbeat")), ()) as figures:
            moved = sum(sum(crowd.each(lambda: work.once(size), at_once)) for _ in range(calls))
        total = work.length(size) * at_once * calls
        verified = moved == total and work.sha256(size) == payload.sha256
        work.check(mode, total)
    return {**figures, "bytes": total, "mb_s": total / figures["seconds"] / 1e6, "verified": verified}


def peer(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return run(MODES["native-stock"], {**parameters, "through": name})


VARIANTS = variants(run, {name: functools.partial(peer, name) for name in PEERS})
