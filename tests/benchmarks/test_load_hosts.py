"""The hosts of an Ansible inventory: what is taken from it, what is wrong with one, and a worker on each of them.

With ansible-core, which ``tox -e package`` has, it reads the inventories itself. Elsewhere a command in its place gives
what it would.
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.backends.base import find_program
from benchmarks.load import Wrong, hosts
from benchmarks.load.hosts import Host, Inventory
from tests.backends.conftest import alive

ROOT = Path(__file__).parent.parent.parent

INI = """
[servers]
service ansible_host=10.0.0.1

[near]
client-1 ansible_host=10.0.0.2 ansible_port=2222

[far]
10.0.0.3

[workers:children]
near
far

[workers:vars]
ansible_user=bench
ansible_ssh_private_key_file=~/.ssh/bench
"""
YAML = """
servers: {hosts: {service: {ansible_host: 10.0.0.1}}}
workers:
  children:
    near: {hosts: {client-1: {ansible_host: 10.0.0.2, ansible_port: 2222}}}
    far: {hosts: {10.0.0.3: }}
  vars: {ansible_user: bench, ansible_ssh_private_key_file: ~/.ssh/bench}
"""
_LOGIN = {"ansible_user": "bench", "ansible_ssh_private_key_file": "~/.ssh/bench"}
#: What ``ansible-inventory --list`` makes of both.
LISTED: dict[str, Any] = {
    "_meta": {"hostvars": {
        "service": {"ansible_host": "10.0.0.1"},
        "client-1": {"ansible_host": "10.0.0.2", "ansible_port": 2222, **_LOGIN},
        "10.0.0.3": _LOGIN,
    }},
    "all": {"children": ["ungrouped", "servers", "workers"]},
    "servers": {"hosts": ["service"]},
    "workers": {"children": ["near", "far"]},
    "near": {"hosts": ["client-1"]},
    "far": {"hosts": ["10.0.0.3"]},
}  # fmt: skip
WORKERS = [
    Host("client-1", "10.0.0.2", 2222, "bench", "~/.ssh/bench"),
    Host("10.0.0.3", "10.0.0.3", 0, "bench", "~/.ssh/bench"),
]


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def in_place_of_ansible(path: Path, listed: Mapping[str, Any]) -> Path:
    return program(path, f"cat <<'LISTED'\n{json.dumps(listed)}\nLISTED")


@pytest.fixture
def listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Has the inventory be what is given."""

    def give(listed: Mapping[str, Any]) -> Inventory:
        found = in_place_of_ansible(tmp_path / "ansible-inventory", listed)
        monkeypatch.setattr(hosts, "find_program", lambda _: str(found))
        return Inventory("hosts.ini")

    return give


def real_ansible() -> None:
    """Skip the test where there is none."""
    if find_program(hosts.PROGRAM) is None:
        assert not os.environ.get("RECIPES_REQUIRED"), f"{hosts.PROGRAM} is not installed"
        pytest.skip("ansible-core is not installed (pip install ansible-core)")


def test_the_hosts_of_a_group_and_how_to_reach_them(listing: Any) -> None:
    inventory = listing(LISTED)
    assert inventory.group("--group", "workers") == WORKERS
    assert inventory.group("--servers", "servers", only=1) == [Host("service", "10.0.0.1")]
    plain = ["ssh", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR"]
    assert Host("service", "10.0.0.1").ssh("true") == [*plain, "10.0.0.1", "true"]
    there = ["-p", "2222", "-l", "bench", "-i", "~/.ssh/bench", "10.0.0.2"]
    assert WORKERS[0].ssh("true", "-tt") == ["ssh", "-tt", *plain[1:], *there, "true"]


def test_a_host_in_two_groups_has_one_worker(listing: Any) -> None:
    listed = {**LISTED, "far": {"hosts": ["10.0.0.3", "client-1"]}}
    assert listing(listed).group("--group", "workers") == WORKERS


@pytest.mark.parametrize("group", ["others", "ungrouped"])
def test_a_group_that_has_no_hosts_is_told(listing: Any, group: str) -> None:
    with pytest.raises(Wrong) as caught:
        listing(LISTED).group("--group", group)
    known = "there are all, servers, workers, near, far"
    assert str(caught.value) == f"--group {group}: no group of hosts.ini with hosts; {known}"


def test_there_is_one_server(listing: Any) -> None:
    with pytest.raises(Wrong) as caught:
        listing(LISTED).group("--servers", "workers", only=1)
    assert str(caught.value) == "--servers workers: the hosts client-1, 10.0.0.3 of hosts.ini, where 1 is allowed"


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("ansible_port", "ssh", "ansible_port=ssh is not a number from 1 to 65535"),
        ("ansible_port", 65536, "ansible_port=65536 is not a number from 1 to 65535"),
        ("ansible_host", "{{ address }}", "ansible_host='{{ address }}' is not a plain word, without a template"),
        ("ansible_user", "-oProxyCommand=x", "ansible_user='-oProxyCommand=x' is not a plain word, without a template"),
        ("ansible_ssh_private_key_file", {}, "ansible_ssh_private_key_file={} is not a plain word, without a template"),
    ],
)
def test_a_variable_that_ssh_cannot_be_given_is_told(listing: Any, variable: str, value: Any, allowed: str) -> None:
    inventory = listing({**LISTED, "_meta": {"hostvars": {"client-1": {variable: value}}}})
    with pytest.raises(Wrong) as caught:
        inventory.group("--group", "near")
    assert str(caught.value) == f"hosts.ini: client-1: {allowed}"


def test_without_ansible_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "find_program", lambda _: None)
    with pytest.raises(Wrong) as caught:
        Inventory("hosts.ini")
    assert str(caught.value) == (
        "--inventory hosts.ini: ansible-inventory, which reads it, is missing: pip install ansible-core"
    )


def test_what_ansible_says_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = program(tmp_path / "ansible-inventory", "echo 'ERROR! no such\n inventory' >&2; exit 5")
    monkeypatch.setattr(hosts, "find_program", lambda _: str(failing))
    with pytest.raises(Wrong) as caught:
        Inventory("hosts.ini")
    assert str(caught.value) == "--inventory hosts.ini: ansible-inventory: ERROR! no such inventory"


@pytest.mark.parametrize(("name", "text"), [("hosts.ini", INI), ("hosts.yaml", YAML)], ids=["INI", "YAML"])
def test_ansible_reads_it(tmp_path: Path, name: str, text: str) -> None:
    real_ansible()
    (tmp_path / name).write_text(text)
    inventory = Inventory(str(tmp_path / name))
    assert inventory.group("--group", "workers") == WORKERS
    assert inventory.group("--servers", "servers", only=1) == [Host("service", "10.0.0.1")]


@pytest.mark.parametrize("text", [None, "[load\nclient-1\n"], ids=["missing", "broken"])
def test_ansible_cannot_read_it(tmp_path: Path, text: str | None) -> None:
    """It would only warn, and go on without any hosts."""
    real_ansible()
    path = tmp_path / "hosts.ini"
    if text is not None:
        path.write_text(text)
    with pytest.raises(Wrong, match=r"^--inventory .*hosts\.ini: ansible-inventory: "):
        Inventory(str(path))


#: Of a host: it has what a worker needs, or not; and a worker writes who it is, and waits.
PYTHON = """\
case "$1" in
    -c) [ ! -e broken ] || { echo "Traceback:" >&2; echo "No module named 'locust'" >&2; exit 1; } ;;
    *) echo "$$ $*" >> workers; exec sleep 1000 ;;
esac"""
#: In the place of ssh: each host is a directory of its own here.
SSH = """\
while :; do case "$1" in -tt) shift ;; -[olpi]) shift 2 ;; *) break ;; esac; done
[ "$1" != 10.0.0.9 ] || {{ echo "ssh: no route to 10.0.0.9" >&2; exit 255; }}
cd {machines}/"$1" && shift && exec sh -c "$*" """
#: Ends when both workers are there.
SCRIPT = """\
until [ "$(cat {workers} 2>&1 | grep -c worker)" = 2 ]; do sleep 0.05; done
env | grep ^FASTIO_LOAD | sort; exit 3"""


def command(
    directory: Path, *given: str, text: str = INI, listed: Mapping[str, Any] = LISTED
) -> subprocess.CompletedProcess[str]:
    """``python -m benchmarks.load hosts`` with a directory for each host."""
    programs, machines = directory / "programs", directory / "machines"
    in_place_of_ansible(programs / "ansible-inventory", listed)
    program(programs / "ssh", SSH.format(machines=shlex.quote(str(machines))))
    for address in ("10.0.0.2", "10.0.0.3"):
        program(machines / address / "checkout" / ".venv" / "bin" / "python", PYTHON)
    (directory / "hosts.ini").write_text(text)
    words = ["hosts", "--inventory", str(directory / "hosts.ini"), "--checkout", "checkout", *given]
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.load", *words], cwd=ROOT, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
    )  # fmt: skip


def test_a_worker_on_each_host_while_the_command_runs(tmp_path: Path) -> None:
    workers = f"{shlex.quote(str(tmp_path / 'machines'))}/*/checkout/workers"
    done = command(tmp_path, "--group", "workers", "--", "sh", "-c", SCRIPT.format(workers=workers))
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.splitlines() == [
        "FASTIO_LOAD_BIND=10.0.0.1:5557", "FASTIO_LOAD_SERVER=10.0.0.1", "FASTIO_LOAD_WORKERS=2",
    ]  # fmt: skip
    said = [path.read_text().split(maxsplit=1) for path in (tmp_path / "machines").glob("*/checkout/workers")]
    assert [words for _, words in said] == ["-m benchmarks.load worker 10.0.0.1:5557 --keep\n"] * 2
    assert not any(alive(int(pid)) for pid, _ in said)


def test_hosts_that_cannot_be_workers_are_all_told(tmp_path: Path) -> None:
    text = INI.replace("\n10.0.0.3\n", "\n10.0.0.3\n10.0.0.9\n")
    listed = {**LISTED, "far": {"hosts": ["10.0.0.3", "10.0.0.9"]}}
    (tmp_path / "machines" / "10.0.0.3" / "checkout").mkdir(parents=True)
    (tmp_path / "machines" / "10.0.0.3" / "checkout" / "broken").touch()
    done = command(tmp_path, "--", "echo", "never", text=text, listed=listed)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "10.0.0.3: no worker there: No module named 'locust'", "10.0.0.9: no worker there: ssh: no route to 10.0.0.9",
    ]  # fmt: skip
