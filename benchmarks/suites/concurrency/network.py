"""The same work from one worker and from several, over a network of namespaces (:mod:`benchmarks.backends.network`).

Each run has a separate network, a glance-api of release 32 and workers. The server, the master of the load and this
process are on one of the machines, a worker is on each of the others. Each request has a separate connection, and
every byte that comes is compared.

A run is so many whole images, from the first request to the end of the last one. Its bytes are thus known, however many
of them are under way at any moment, and its CPU time is that of exactly these bytes.

Parameters beside those of :mod:`benchmarks.load.measuring`:

``method``
    ``"stock"``, or with fastio ``"copying"`` (the service reads the file and sends what it has read) or ``"sendfile"``
``tls``
    1: by HTTPS, which nginx on the server's machine does
``workers``, ``rate``
    machines with a worker each, and their links: ``"1Gbit"``
``each``
    requests of each of the ``users``, which are those of all workers together

Results: bandwidth from ``bytes`` and ``seconds``, ``operations_per_second``, ``success_ratio``, the times of the
requests, ``server_cpu_seconds`` by the clocks of its processes, ``machine_cpu_seconds`` of all processes by samples,
``generator_cpu`` and the ``bottleneck``.
"""

import contextlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.backends.base import ROOT
from benchmarks.backends.glance import Glance32
from benchmarks.backends.network import SERVER, Network
from benchmarks.harness.modes import choice
from benchmarks.harness.probes import server_cpu_seconds
from benchmarks.load import measuring
from benchmarks.load.plan import Plan
from benchmarks.suites.concurrency import images

#: Ways in which glance sends a file -> parameters of the backend.
METHODS: Mapping[str, Mapping[str, Any]] = {
    "stock": {},
    "copying": {"fastio": "on", "disabled": "glance_sendfile"},
    "sendfile": {"fastio": "on"},
}
#: Of the master, which is alone in its namespace.
PORT = 5557


def distributed(network: Network) -> dict[str, str]:
    """Return the environment of a load of the server's machine."""
    return {"FASTIO_LOAD_BIND": f"{network.address(SERVER)}:{PORT}", "FASTIO_LOAD_WORKERS": str(len(network.hosts) - 1)}


def start_workers(network: Network, environment: Mapping[str, str] | None = None) -> None:
    """Start a worker on each client's machine, for a master on the server's; they end with the network."""
    worker = [sys.executable, "-m", "benchmarks.load", "worker", f"{network.address(SERVER)}:{PORT}"]
    for host in network.hosts[1:]:
        command = network.command(host, worker)
        network.spawn(f"worker-{host}", command, {"PYTHONPATH": str(ROOT), **(environment or {})})


def run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """One run of the load."""
    from benchmarks.load import analysis
    from benchmarks.load.bottleneck import Limits

    network = Network(clients=parameters["workers"], rate=parameters["rate"])
    with contextlib.ExitStack() as stack:
        stack.enter_context(network)
        stack.enter_context(network.inside(SERVER))
        load = stack.enter_context(measuring.Load(parameters.get("records", ""), distributed(network)))
        server, plan, trusted = stack.enter_context(_serving(parameters, network.address(SERVER)))
        start_workers(network, {"SSL_CERT_FILE": trusted} if trusted else {})
        pids = server.pids()
        before = server_cpu_seconds(pids)
        figures = load.measured(plan, pids, Limits(rate=network.rate, users=plan.users), analysis.everything)
        spent = server_cpu_seconds(pids) - before
    costs = {"server_cpu_seconds": spent, "machine_cpu_seconds": figures["machine_cpu"] * figures["seconds"]}
    return {**figures, **costs}


@contextlib.contextmanager
def _serving(parameters: Mapping[str, Any], address: str) -> Iterator[tuple[Glance32, Plan, str]]:
    """A server with images; yields it, the load, and the file of the certificate that is to be trusted."""
    method = choice(parameters, "method", *METHODS)
    with Glance32(host=address, tls=parameters.get("tls", 0), **METHODS[method]) as glance:
        access = glance.access()
        images.write(parameters, access)
        if parameters.get("tls"):
            access["url"] = access["https_url"]
        total = parameters["users"] * parameters["each"]
        plan = images.reading({**parameters, "total": total, "server": method}, access)
        yield glance, plan, access.get("certificate", "")
