"""Machines that share a switch, on this one: network namespaces, whose links have a rate.

::

    with Network(clients=8, rate="1Gbit") as network:
        with network.inside(SERVER):
            ...                                          # this thread, and what it starts, is on the server
        subprocess.run(network.command("client-1", ["ping", network.address(SERVER)]))

The link of each machine has the rate in both directions (tc-tbf(8)). The addresses are the same in all networks,
because no network sees another one, nor this machine's own.

A namespace has no name. It lives as long as a process in it does. The end of a backend's processes, whatever happens to
the one that started it, removes the network too: nothing of it is ever in the system's own namespace.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import re
import subprocess
from collections.abc import Iterator, Sequence

from benchmarks.backends.base import Backend, BackendError, find_program

#: Names of machines: the one that serves, and those that ask.
SERVER = "server"
CLIENT = "client-{}"
#: The first two bytes of the addresses are of an unrouted range; the switch itself has none.
_ADDRESS, _BITS = "10.77.{}.{}", 16
#: The interface of each machine.
INTERFACE = "eth0"
_SWITCH = "switch"

#: As many clients as there is reason for on one machine.
MOST_CLIENTS = 250
#: Seconds that a link may send at once after a pause, and that a packet may wait for its turn.
BURST, LATENCY = 0.001, 0.05
#: Bytes: less would be below what the kernel hands to a link in one piece, and too few would wait.
LEAST_BURST = 128 << 10

_RATE = re.compile(r"([1-9]\d*)([KMG])bit")
_UNITS = {"K": 10**3, "M": 10**6, "G": 10**9}
_NEWNET = 0x40000000


class Network(Backend):
    """A switch, a server and some clients."""

    name = "network"
    driver = ""
    programs = ("ip", "tc", "unshare", "nsenter")
    install = "apt-get install iproute2 util-linux"
    #: ``clients``: how many; ``rate``: of each link, such as ``1Gbit``, any if it is empty
    parameters = {"clients": 1, "rate": ""}

    def __init__(self, directory: str | os.PathLike[str] | None = None, **parameters: int | str) -> None:
        super().__init__(directory, **parameters)
        if not 1 <= self.chosen["clients"] <= MOST_CLIENTS:
            raise BackendError(f"network: clients={self.chosen['clients']} is not a number from 1 to {MOST_CLIENTS}")
        if self.chosen["rate"] and not _RATE.fullmatch(self.chosen["rate"]):
            raise BackendError(f"network: rate={self.chosen['rate']!r} is not a rate such as 100Mbit, 1Gbit or 10Gbit")
        self._holders: dict[str, int] = {}

    def why_not(self) -> str:
        return super().why_not() or _refusal()

    @property
    def hosts(self) -> list[str]:
        """The names of the machines, the server first."""
        return [SERVER, *map(CLIENT.format, range(1, self.chosen["clients"] + 1))]

    @property
    def rate(self) -> float:
        """Bytes that a link carries in a second, of its packets; 0: any."""
        found = _RATE.fullmatch(self.chosen["rate"])
        return int(found[1]) * _UNITS[found[2]] / 8 if found else 0

    def address(self, host: str) -> str:
        """Where the others reach a machine."""
        return _ADDRESS.format(0, 1 + self.hosts.index(host))

    def namespace(self, host: str) -> str:
        """The file that stands for a machine's namespace.

        :raises BackendError: if there is no such machine
        """
        if host not in self._holders:
            raise BackendError(f"network: there is no {host!r}; there are {', '.join(self._holders) or 'none'}")
        return f"/proc/{self._holders[host]}/ns/net"

    def command(self, host: str, command: Sequence[str]) -> list[str]:
        """The command that runs ``command`` on a machine."""
        return [self.find("nsenter"), f"--net={self.namespace(host)}", *command]

    @contextlib.contextmanager
    def inside(self, host: str) -> Iterator[None]:
        """Have this thread be on a machine, and with it the sockets, threads and processes that it makes meanwhile."""
        own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            there = os.open(self.namespace(host), os.O_RDONLY | os.O_CLOEXEC)
            try:
                _enter(there)
            finally:
                os.close(there)
            try:
                yield
            finally:
                _enter(own)
        finally:
            os.close(own)

    def launch(self) -> None:
        own = os.readlink("/proc/thread-self/ns/net")
        for each in (_SWITCH, *self.hosts):
            holder = [self.find("unshare"), "--net", self.find("sleep"), "infinity"]
            self._holders[each] = self.spawn(each, holder)
        # The child of a fork has this process's namespace for a moment.
        self.wait(lambda: own not in map(os.readlink, map(self.namespace, self._holders)), "a namespace")
        lines = ["ip link add name bridge0 type bridge", "ip link set bridge0 up"]
        for number, host in enumerate(self.hosts):
            port, pid = f"port{number}", self._holders[host]
            lines.append(f"ip link add name {port} type veth peer name {INTERFACE} netns {pid}")
            lines.append(f"ip link set {port} master bridge0 up")
            lines += _shaped(port, self.chosen["rate"], self.rate)
        self._do(_SWITCH, lines)
        for host in self.hosts:
            lines = [
                "ip link set lo up",
                f"ip address add {self.address(host)}/{_BITS} dev {INTERFACE}",
                f"ip link set {INTERFACE} up",
            ]
            self._do(host, lines + _shaped(INTERFACE, self.chosen["rate"], self.rate))

    def stop(self, keep_logs: bool = False) -> None:
        self._holders.clear()
        super().stop(keep_logs)

    def _do(self, host: str, lines: Sequence[str]) -> None:
        # Commands that are not on every user's path are on root's.
        self.run(self.command(host, ["sh", "-ec", "\n".join(lines)]), {"PATH": _path()})


def _shaped(interface: str, rate: str, bytes_per_second: float) -> list[str]:
    """The commands that limit what an interface sends."""
    burst = max(LEAST_BURST, round(bytes_per_second * BURST))
    bucket = f"tbf rate {rate} burst {burst}b latency {LATENCY * 1000:g}ms"
    return [f"tc qdisc add dev {interface} root {bucket}"] if rate else []


@functools.cache
def _refusal() -> str:
    """Why no network can be made here; empty if it can."""
    lines = ("ip link add name a0 type veth peer name b0", "ip link add name bridge0 type bridge")
    script = "\n".join([*lines, "tc qdisc add dev a0 root tbf rate 1Gbit burst 1mb latency 50ms"])
    done = subprocess.run(
        [find_program("unshare") or "unshare", "--net", "sh", "-exc", script], env={"PATH": _path(), "LC_ALL": "C"},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    needs = "root with CAP_SYS_ADMIN and CAP_NET_ADMIN, and a kernel with veth, bridge and tbf"
    said = " ".join(done.stderr.splitlines()[-2:]) or f"exit status {done.returncode}"
    return f"{Network.name}: none can be made here, it needs {needs}: {said}" if done.returncode else ""


def _path() -> str:
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def _enter(namespace: int) -> None:
    """Have this thread be in a network namespace; os.setns() is only there from Python 3.12 on.

    :param namespace: a descriptor
    """
    if ctypes.CDLL(None, use_errno=True).setns(namespace, _NEWNET):
        error = ctypes.get_errno()
        raise OSError(error, f"no way into the namespace: {os.strerror(error)}")
