"""Networks of namespaces: who reaches whom, what the links are like, and that nothing of them is left."""

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.backends import network as networks
from benchmarks.backends.base import BackendError
from benchmarks.backends.network import SERVER, Network
from tests.backends.conftest import alive
from tests.backends.required import missing

#: More than the kernel keeps for a connection, and no multiple of a link's packets.
SIZE = 3_000_001

#: Sends a file to who connects first, and prints its port before.
SENDER = """
import socket, sys
with socket.create_server((sys.argv[1], 0)) as listener, open(sys.argv[2], "rb") as file:
    print(listener.getsockname()[1], flush=True)
    connection, _ = listener.accept()
    with connection:
        connection.sendfile(file)
"""
#: Prints the hash of all that comes, and the address that it comes from and to.
RECEIVER = """
import hashlib, socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=60) as connection:
    file = connection.makefile("rb")
    print(hashlib.sha256(file.read()).hexdigest(), connection.getsockname()[0], connection.getpeername()[0])
"""


@pytest.fixture
def possible() -> None:
    """The test is skipped where no network can be made, which only an attempt shows."""
    reason = Network().why_not()
    if reason:
        missing(Network.name, reason)


real = pytest.mark.usefixtures("possible")


@pytest.fixture
def network(tmp_path: Path, possible: None) -> Iterator[Network]:
    with Network(tmp_path, clients=2, rate="80Mbit") as made:
        yield made


def on(network: Network, host: str, *command: str) -> str:
    done = subprocess.run(network.command(host, command), capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout


def interfaces(text: str) -> list[str]:
    """The names that ``ip -brief link`` has printed."""
    return [line.split()[0].partition("@")[0] for line in text.splitlines()]


def test_bytes_go_from_one_machine_to_another(network: Network, tmp_path: Path) -> None:
    path = tmp_path / "content"
    path.write_bytes(os.urandom(SIZE))
    send = network.command(SERVER, [sys.executable, "-c", SENDER, network.address(SERVER), str(path)])
    with subprocess.Popen(send, stdout=subprocess.PIPE, text=True) as sender:
        assert sender.stdout is not None
        port = sender.stdout.readline().strip()
        receive = [sys.executable, "-c", RECEIVER, network.address(SERVER), port]
        found = on(network, "client-2", *receive).split()
    assert found == [hashlib.sha256(path.read_bytes()).hexdigest(), "10.77.0.3", "10.77.0.1"]
    # All of it went through the buckets of both ends of the link, which have its rate, and none to the other client.
    assert network.rate == 10_000_000
    assert sent(network, SERVER, "eth0") >= SIZE
    assert sent(network, "switch", "port2") >= SIZE > sent(network, "switch", "port1")


def sent(network: Network, host: str, device: str) -> int:
    """The bytes that a bucket has let through."""
    told = on(network, host, "tc", "-s", "qdisc", "show", "dev", device)
    assert " rate 80Mbit " in told
    (found,) = re.findall(r"^qdisc tbf .*\n Sent (\d+) bytes ", told, re.MULTILINE)
    return int(found)


def test_a_machine_has_its_own_link_and_no_other(network: Network) -> None:
    assert network.hosts == ["server", "client-1", "client-2"]
    for number, host in enumerate(network.hosts, 1):
        told = on(network, host, "ip", "-brief", "address")
        assert interfaces(told) == ["lo", "eth0"] and f" {network.address(host)}/16 " in told
        assert network.address(host) == f"10.77.0.{number}"
    assert {"bridge0", "port0", "port1", "port2"} <= set(interfaces(on(network, "switch", "ip", "-brief", "link")))
    with pytest.raises(BackendError, match="there is no 'client-3'; there are switch, server, client-1, client-2"):
        network.namespace("client-3")


def test_a_thread_is_on_a_machine_for_a_while(network: Network) -> None:
    def here() -> str:
        return os.readlink("/proc/thread-self/ns/net")

    own = here()
    with network.inside("client-1"):
        assert here() == os.readlink(network.namespace("client-1")) != own
        # Its child is there, too.
        (line,) = subprocess.run(
            [network.find("ip"), "-brief", "address", "show", "dev", "eth0"], capture_output=True, text=True, timeout=60
        ).stdout.splitlines()
        assert " 10.77.0.2/16 " in line
    assert here() == own
    with pytest.raises(ZeroDivisionError), network.inside(SERVER):
        raise ZeroDivisionError
    assert here() == own


def own_links() -> set[str]:
    """Those interfaces of this machine itself that have the name of one of a network's."""
    return {name for name in os.listdir("/sys/class/net") if re.fullmatch(r"bridge0|port\d+", name)}


@real
def test_a_network_leaves_no_process_and_link(tmp_path: Path) -> None:
    """A network is of processes, which test_backends.py ends in every way; of them each is in a namespace."""
    before = own_links()
    with Network(tmp_path, clients=3) as network:
        # Of a machine, too, that has something to do.
        network.spawn("busy", network.command("client-1", ["sleep", "1000"]))
        pids = network.pids()
        assert len(pids) == 6 and own_links() == before
    assert not any(map(alive, pids)) and list(tmp_path.iterdir()) == []
    with pytest.raises(BackendError, match="there is no 'server'; there are none"):
        network.namespace(SERVER)


@real
def test_a_link_that_cannot_be_made_is_reported_and_nothing_is_left(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(networks, "_shaped", lambda *_: ["ip link set nowhere up"])
    with pytest.raises(BackendError, match='(?s)network did not start: .*Cannot find device "nowhere"'):
        Network(tmp_path, rate="1Gbit").start()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".log"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"clients": 0}, "clients=0 is not a number from 1 to 250"),
        ({"rate": "fast"}, "rate='fast' is not a rate such as 100Mbit, 1Gbit or 10Gbit"),
        ({"rate": "0Gbit"}, "rate='0Gbit' is not a rate"),
        ({"host": "x"}, "unknown parameter 'host'; its parameters: clients, rate"),
    ],
)
def test_impossible_links(parameters, message) -> None:
    with pytest.raises(BackendError, match=message):
        Network(**parameters)


@pytest.mark.parametrize(
    ("link", "commands"),
    [
        (("", 0), []),
        (("10Gbit", 1.25e9), ["tc qdisc add dev eth0 root tbf rate 10Gbit burst 1250000b latency 50ms"]),
        (("8Mbit", 1e6), ["tc qdisc add dev eth0 root tbf rate 8Mbit burst 131072b latency 50ms"]),
    ],
)
def test_the_commands_of_a_link(link, commands) -> None:
    assert networks._shaped("eth0", *link) == commands


#: Programs that stand for those of a machine that lacks something, and what is then said.
LACKING = [
    ("unshare", "unshare failed: Operation not permitted", "tbf: unshare failed: Operation not permitted"),
    ("ip", "Error: Unknown device type.", " a0 type veth peer name b0 Error: Unknown device type."),
    ("tc", "Error: unknown kind.", " root tbf rate 1Gbit burst 1mb latency 50ms Error: unknown kind."),
]


@real
@pytest.mark.parametrize(("name", "error", "message"), LACKING)
def test_a_missing_permission_is_reported(tmp_path: Path, monkeypatch, name: str, error: str, message: str) -> None:
    program = tmp_path / name
    program.write_text(f"#!/bin/sh\necho '{error}' >&2; exit 2\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    reason = networks._refusal.__wrapped__()
    assert reason.startswith("network: none can be made here, it needs root with ") and reason.endswith(message)


def test_a_missing_program_is_reported(monkeypatch) -> None:
    monkeypatch.setattr("benchmarks.backends.base.find_program", lambda name, *_: None)
    assert Network().why_not() == (
        "network: ip, tc, unshare, nsenter not installed; install with: apt-get install iproute2 util-linux"
    )
