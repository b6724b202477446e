"""A command on one machine of a network of namespaces, with a worker of the load on each of the others.

The command finds in its environment what distributes each load that it starts: ``FASTIO_LOAD_BIND``,
``FASTIO_LOAD_WORKERS`` and ``FASTIO_LOAD_SERVER``. So it does the same as on real machines.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.backends.base import ROOT, BackendError
from benchmarks.backends.network import SERVER, Network
from benchmarks.load import Failed, Wrong

#: Seconds that the command has to end after it was asked to.
GRACE = 15.0


def run(command: Sequence[str], port: int, clients: int = 1, rate: str = "", delay: int = 0) -> int:
    """Run the command; returns its exit status, or 128 and the number of the signal that has ended it.

    :param port: where the workers look for a master, on the machine that the command is on
    :param clients: how many others there are, with a worker each
    :param rate: of each link, such as ``1Gbit``; any if it is empty
    :param delay: milliseconds that a packet and its answer are on the way together
    :raises Wrong: if there can be no such network
    :raises Failed: if it cannot be made here; the message says what is missing
    """
    try:
        network = Network(clients=clients, rate=rate, delay=delay)
    except BackendError as error:
        raise Wrong(str(error)) from error
    try:
        with network:
            start_workers(network, port, keep=True)
            # It ends with this process if that one is killed.
            with_us = [network.find("setpriv", network.install), "--pdeathsig", "TERM", "--", *command]
            return carried_out(network.command(SERVER, with_us), distributed(*master(network, port)))
    except BackendError as error:
        raise Failed(str(error)) from error


def master(network: Network, port: int) -> tuple[str, int, int]:
    """The address of the server's machine, the port, and how many workers there will be."""
    return network.address(SERVER), port, len(network.hosts) - 1


def distributed(server: str, port: int, workers: int) -> dict[str, str]:
    """What the loads of the server's machine have to find in their environment.

    :param server: its address, as the workers reach it
    """
    return {
        "FASTIO_LOAD_SERVER": server, "FASTIO_LOAD_BIND": f"{server}:{port}", "FASTIO_LOAD_WORKERS": str(workers),
    }  # fmt: skip


def start_workers(
    network: Network, port: int, keep: bool = False, environment: Mapping[str, str] | None = None
) -> None:  # fmt: skip
    """Start a worker on each client's machine, for a master on the server's; they end with the network.

    :param keep: for one run after the other
    :param environment: what they have besides what servers inherit
    """
    worker = [sys.executable, "-m", "benchmarks.load", "worker", f"{network.address(SERVER)}:{port}"]
    for host in network.hosts[1:]:
        command = network.command(host, worker + ["--keep"] * keep)
        network.spawn(f"worker-{host}", command, {"PYTHONPATH": str(ROOT), **(environment or {})})


def carried_out(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """The exit status of a command, or 128 and the number of the signal that has ended it.

    :param environment: what it has besides this process's
    """
    with running(command, env={**os.environ, **environment}) as process:
        status = process.wait()
    return 128 - status if status < 0 else status


@contextlib.contextmanager
def running(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends with the block.

    :param options: of :class:`subprocess.Popen`
    """
    process = subprocess.Popen(command, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
