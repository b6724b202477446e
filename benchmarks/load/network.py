"""A command on one machine of a network of namespaces, with a worker of the load on each of the others.

The command finds in its environment what distributes each load that it starts: ``FASTIO_LOAD_BIND``,
``FASTIO_LOAD_WORKERS`` and ``FASTIO_LOAD_SERVER``. So it does the same as on real machines.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence

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
            with _running(network, command, {**os.environ, **distributed(network, port)}) as process:
                status = process.wait()
    except BackendError as error:
        raise Failed(str(error)) from error
    return 128 - status if status < 0 else status


def distributed(network: Network, port: int) -> dict[str, str]:
    """What the loads of the server's machine have to find in their environment."""
    server = network.address(SERVER)
    workers = str(len(network.hosts) - 1)
    return {
        "FASTIO_LOAD_SERVER": server, "FASTIO_LOAD_BIND": f"{server}:{port}", "FASTIO_LOAD_WORKERS": workers,
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


@contextlib.contextmanager
def _running(network: Network, command: Sequence[str], environment: Mapping[str, str]) -> Iterator[subprocess.Popen]:
    """The command on the server's machine. It ends with the block, and with this process if that one is killed."""
    with_us = [network.find("setpriv", network.install), "--pdeathsig", "TERM", "--", *command]
    process = subprocess.Popen(network.command(SERVER, with_us), env=environment)
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
