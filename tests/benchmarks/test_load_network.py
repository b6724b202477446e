"""Loads from several machines, which are namespaces: the command for them, and the page for real hosts."""

import collections
import contextlib
import importlib.util
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

# Not importorskip(): to import it patches the process.
if importlib.util.find_spec("locust") is None:
    pytest.skip("loads need the extra 'load'", allow_module_level=True)
pytest.importorskip("numpy", reason="the analysis needs the extra 'bench'")

from benchmarks.backends.logserver import LogServer
from benchmarks.backends.network import SERVER, Network
from benchmarks.load import analysis
from benchmarks.load.content import Content
from benchmarks.load.plan import Operation, Plan
from tests.backends.conftest import alive
from tests.backends.required import missing
from tests.conftest import with_services
from tests.eventually import until

pytestmark = with_services

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "doc" / "source" / "measuring" / "hosts.rst"

#: The port of the page's and of the command's workers.
PORT = 5557


@pytest.fixture(autouse=True)
def possible() -> None:
    reason = Network.available() or LogServer.available()
    if reason:
        missing(Network.name, reason)


def plan(url: str) -> Plan:
    return Plan(
        protocol="logs", server={"url": url}, operations=(Operation("read", count=10),), users=4, total=40,
        size=100_003, patience=60,
    )  # fmt: skip


def logs(directory: Path) -> Path:
    """The logs of the plan, for a log server."""
    chosen = plan("http://127.0.0.1:1")
    content = Content(chosen)
    for number in range(10):
        path = directory / chosen.container / chosen.name(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(content.pieces(number)))
    return directory


def check(directory: Path, workers: int) -> None:
    """All of the plan was done, with the right bytes, by so many workers."""
    found = analysis.read(directory)
    assert not found.doubts and not found.errors
    assert len(found.operations) == 40 and set(found.operations.bytes.tolist()) == {100_003}
    assert collections.Counter((found.operations.user >> 32).tolist()) == dict.fromkeys(range(workers), 40 // workers)


def network(*arguments: str, **options) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.load", "network", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, text=True, **options)


#: What a suite does: a server of its own, and a load by what the environment says.
SUITE = """
import dataclasses, os, sys
from pathlib import Path
from benchmarks.backends.logserver import LogServer
from benchmarks.load import client, plan
with LogServer(root=sys.argv[1], host=os.environ["FASTIO_LOAD_SERVER"]) as server:
    where = {"url": server.access()["url"]}
    client.carry_out(dataclasses.replace(plan.read(Path(sys.argv[2])), server=where), Path(sys.argv[3]))
"""


def test_a_load_that_a_command_starts_is_distributed(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(plan("http://127.0.0.1:1").to_dict()))
    given = [logs(tmp_path / "logs"), tmp_path / "plan.json", tmp_path / "run"]
    command = [sys.executable, "-c", SUITE, *map(str, given)]
    with network("--clients", "2", "--rate", "1Gbit", "--", *command) as process:
        _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    check(tmp_path / "run", workers=2)


def test_what_the_command_finds_and_its_exit_status() -> None:
    script = 'env | grep ^FASTIO_LOAD; ip -brief address show dev eth0; tc qdisc show dev eth0; exit "$1"'
    with network("--clients", "3", "--rate", "10Gbit", "--", "sh", "-c", script, "-", "3") as process:
        told, said = process.communicate(timeout=120)
    assert process.returncode == 3 and said == ""
    assert {
        "FASTIO_LOAD_SERVER=10.77.0.1", "FASTIO_LOAD_BIND=10.77.0.1:5557", "FASTIO_LOAD_WORKERS=3",
    } <= set(told.splitlines())  # fmt: skip
    assert " 10.77.0.1/16 " in told and " rate 10Gbit " in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rate", "much", "--", "true"], "network: rate='much' is not a rate such as 100Mbit, 1Gbit or 10Gbit\n"),
        (["--clients", "0", "--", "true"], "network: clients=0 is not a number from 1 to 250\n"),
        ([], "the following arguments are required: COMMAND\n"),
    ],
)
def test_what_can_not_be_is_told(arguments, message) -> None:
    with network(*arguments) as process:
        _, said = process.communicate(timeout=60)
    assert process.returncode == 2 and said.endswith(message)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda each: each.name)
def test_a_signal_ends_the_command_with_all_machines(number: int) -> None:
    # Its namespace, its own process, and those of the workers.
    script = "echo $$; readlink /proc/self/ns/net; exec sleep 1000"
    with network("--", "sh", "-c", script) as process:
        try:
            assert process.stdout is not None
            pid, space = int(process.stdout.readline()), process.stdout.readline().strip()
            assert alive(pid) and pid in inhabitants(space)
            process.send_signal(number)
            process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == (143 if number == signal.SIGTERM else -9)
    until(lambda: not inhabitants(space), "the end of the command and of the namespace")


def inhabitants(space: str) -> list[int]:
    """The processes that are in a network namespace."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{entry}/ns/net") == space:
                found.append(int(entry))
        except OSError:
            continue
    return found


#: In the place of ssh: the host is the address of a machine of the network, and its file names its namespace.
SSH = """#!/bin/sh
while :; do case "$1" in -tt) shift ;; -o) shift 2 ;; *) break ;; esac; done
space=$(cat {hosts}/"$1") && shift && exec {nsenter} --net="$space" sh -c "$*"
"""


def blocks(section: str) -> list[str]:
    """The commands in a section of the page, block by block."""
    text = PAGE.read_text(encoding="utf-8")
    (own,) = re.findall(rf"^{section}\n=+\n(.*?)(?=^[^\n]+\n=+$|\Z)", text, re.MULTILINE | re.DOTALL)
    found = re.findall(r"::\n\n((?:    .*\n|\n)+)", own)
    return ["\n".join(line[4:] for line in block.splitlines()).strip() for block in found]


class Page(NamedTuple):
    """A network whose machines do what the page for real hosts says."""

    #: of the server and the clients
    addresses: list[str]
    checkout: Path
    #: runs a script on the server, in the checkout
    do: Callable[[str], subprocess.CompletedProcess[str]]


@contextlib.contextmanager
def page(directory: Path) -> Iterator[Page]:
    """Two clients, a log server that has the plan's logs, and a checkout with the plan; of the machines all is one."""
    checkout, hosts, programs = (directory / each for each in ("checkout", "hosts", "programs"))
    for each in (checkout / ".venv" / "bin", hosts, programs):
        each.mkdir(parents=True)
    for name in ("benchmarks", "fastio"):
        (checkout / name).symlink_to(ROOT / name)
    (checkout / ".venv" / "bin" / "python").symlink_to(_with_path(programs / "python"))
    with Network(directory, clients=2, rate="1Gbit") as network, contextlib.ExitStack() as stack:
        with network.inside(SERVER):
            served = LogServer(directory, root=str(logs(directory / "logs")), host=network.address(SERVER))
            stack.enter_context(served)
        (checkout / "plan.json").write_text(json.dumps(plan(served.access()["url"]).to_dict()))
        for host in network.hosts[1:]:
            (hosts / network.address(host)).write_text(network.namespace(host))
        addresses = [network.address(host) for host in network.hosts]
        executable(programs / "ssh", SSH.format(hosts=hosts, nsenter=network.find("nsenter")))
        # Where there is a real one, it is found first.
        executable(programs / "ansible-inventory", f"#!/bin/sh\ncat <<END\n{json.dumps(listed(*addresses))}\nEND\n")

        def do(script: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                network.command(SERVER, ["sh", "-euc", script]), cwd=checkout,
                env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
                capture_output=True, text=True, timeout=300,
            )  # fmt: skip

        yield Page(addresses, checkout, do)


def listed(server: str, *clients: str) -> Mapping[str, Any]:
    """What Ansible makes of the page's inventory."""
    hosts = {"service": server, **{f"client-{number}": each for number, each in enumerate(clients, 1)}}
    return {
        "_meta": {"hostvars": {name: {"ansible_host": address} for name, address in hosts.items()}},
        "servers": {"hosts": ["service"]}, "workers": {"hosts": list(hosts)[1:]},
    }  # fmt: skip


def test_the_page_for_real_hosts(tmp_path: Path) -> None:
    """Its commands as they are, but for the names of the machines and of the checkout."""
    names, *commands = blocks("A run")
    assert len(commands) == 4 and re.findall(r"^(\w+)=", names, re.MULTILINE) == ["SERVER", "CLIENTS", "FASTIO"]
    with page(tmp_path) as found:
        server, *clients = found.addresses
        settings = {"SERVER": server, "CLIENTS": " ".join(clients), "FASTIO": str(found.checkout)}
        script = [f"{name}={shlex.quote(value)}" for name, value in settings.items()]
        done = found.do("\n".join([*script, *commands]))
    assert done.returncode == 0, done.stderr
    assert [f"{each}: ready" in done.stdout.splitlines() for each in clients] == [True, True]
    check(found.checkout / "run-1", workers=2)
    assert (found.checkout / "run-1.json").is_file()


def test_the_page_with_an_inventory(tmp_path: Path) -> None:
    """As it is, but for the addresses."""
    inventory, command = blocks("Hosts of an Ansible inventory")[:2]
    assert re.findall(r"ansible_host=(\S+)", inventory) == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    with page(tmp_path) as found:
        for number, address in enumerate(found.addresses, 1):
            inventory = inventory.replace(f"10.0.0.{number}", address)
        (found.checkout / "inventory.ini").write_text(inventory)
        done = found.do(command)
    assert done.returncode == 0, done.stderr
    check(found.checkout / "run-1", workers=2)


def executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def _with_path(path: Path) -> Path:
    """This interpreter, which is not beside its packages any more where it is called from."""
    return executable(path, f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')


def test_the_page_tries_the_network_by_the_command() -> None:
    (words,) = [line for block in blocks("Namespaces instead of machines") for line in block.splitlines()][:1]
    assert words.startswith("python -m benchmarks.load network --clients 8 --rate 1Gbit -- ")
