"""A command on this machine, with a worker of the load on each host of a group of an Ansible inventory.

The command finds in its environment what distributes each load that it starts, as :mod:`benchmarks.load.network` has
it. The workers run by ssh, and end with the command. Ansible itself reads the inventory: INI, YAML, directories,
group_vars, and scripts mean here what they mean to it. Of each host these variables count: ``ansible_host``,
``ansible_port``, ``ansible_user`` and ``ansible_ssh_private_key_file``.
"""

import contextlib
import json
import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.backends.base import find_program
from benchmarks.load import Failed, Wrong
from benchmarks.load.network import carried_out, distributed, running

#: Of ansible-core.
PROGRAM = "ansible-inventory"
#: Seconds that the program, or a host, has for its answer.
PATIENCE = 120.0
#: What an inventory that Ansible cannot read shall be for it: by default it warns, and goes on without.
_SETTINGS = {"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1", "ANSIBLE_NOCOLOR": "1", "LC_ALL": "C.UTF-8"}


class Host(NamedTuple):
    """How ssh reaches a host."""

    name: str
    address: str
    #: 0: that of ssh's own configuration; so are a user and a key that are empty
    port: int = 0
    user: str = ""
    key: str = ""

    def ssh(self, script: str, *options: str) -> list[str]:
        """The command that runs a script of the shell there."""
        given = {"-p": str(self.port or ""), "-l": self.user, "-i": self.key}
        own = [each for option, value in given.items() if value for each in (option, value)]
        return ["ssh", *options, "-o", "BatchMode=yes", "-o", "LogLevel=ERROR", *own, self.address, script]


class Inventory:
    """The groups and hosts of an inventory.

    :param source: as Ansible takes it: a file, a directory, or hosts with commas
    :raises Wrong: if it cannot be read, or what reads it is not installed
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._groups = self._listed()
        self._variables: Mapping[str, Mapping[str, Any]] = self._groups.pop("_meta", {}).get("hostvars", {})

    def group(self, option: str, name: str, only: int = 0) -> list[Host]:
        """The hosts of a group, in the inventory's order.

        :param option: that names the group, for the message
        :param only: how many there must be; 0: any, but some
        :raises Wrong: if they are none, or another number, or if a variable of one of them cannot be used
        """
        found = self._names(name)
        if not found:
            known = ", ".join(each for each in self._groups if self._names(each)) or "none"
            raise Wrong(f"{option} {name}: no group of {self._source} with hosts; there are {known}")
        if only and len(found) != only:
            raise Wrong(f"{option} {name}: the hosts {', '.join(found)} of {self._source}, where {only} is allowed")
        return [self._host(each) for each in found]

    def _names(self, group: str) -> list[str]:
        """The hosts of a group and of those in it; Ansible allows no group in itself."""
        own = self._groups.get(group, {})
        below = [name for child in own.get("children", []) for name in self._names(child)]
        return list(dict.fromkeys([*own.get("hosts", []), *below]))

    def _host(self, name: str) -> Host:
        variables = {"ansible_host": name, **self._variables.get(name, {})}
        words = {
            key: self._word(name, key, variables[key])
            for key in ("ansible_host", "ansible_user", "ansible_ssh_private_key_file") if key in variables
        }  # fmt: skip
        port = str(variables.get("ansible_port", 0))
        if not port.isdecimal() or int(port) > 65535:
            raise Wrong(f"{self._source}: {name}: ansible_port={port} is not a number from 1 to 65535")
        user, key = (words.get(each, "") for each in ("ansible_user", "ansible_ssh_private_key_file"))
        return Host(name, words["ansible_host"], int(port), user, key)

    def _word(self, host: str, key: str, value: Any) -> str:
        # A template is filled in by a playbook only, and ssh would take a dash for an option.
        if not isinstance(value, str) or not value or "{{" in value or value.startswith("-"):
            raise Wrong(f"{self._source}: {host}: {key}={value!r} is not a plain word, without a template")
        return value

    def _listed(self) -> dict[str, Any]:
        program = find_program(PROGRAM)
        if program is None:
            raise Wrong(f"--inventory {self._source}: {PROGRAM}, which reads it, is missing: pip install ansible-core")
        try:
            done = subprocess.run(
                [program, "-i", self._source, "--list"], env={**os.environ, **_SETTINGS}, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, timeout=PATIENCE, check=True,
            )  # fmt: skip
        except subprocess.SubprocessError as error:
            why = " ".join((getattr(error, "stderr", None) or str(error)).split())
            raise Wrong(f"--inventory {self._source}: {PROGRAM}: {why}") from error
        return json.loads(done.stdout)


def run(command: Sequence[str], server: Host, port: int, hosts: Sequence[Host], checkout: Path) -> int:
    """Run the command; returns its exit status, or 128 and the number of the signal that has ended it.

    :param server: this machine
    :param port: where the workers look for a master
    :param hosts: those with a worker each
    :param checkout: the directory of fastio on all of them, with its ``.venv``
    :raises Failed: if one of them cannot be a worker; the message says why
    """
    there = f"cd {shlex.quote(str(checkout))} && exec .venv/bin/python"
    _check(hosts, f"{there} -c 'import locust, benchmarks.load.runner'")
    with contextlib.ExitStack() as stack:
        for host in hosts:
            worker = f"{there} -m benchmarks.load worker {server.address}:{port} --keep"
            stack.enter_context(_connected(host, worker))
        return carried_out(command, distributed(server.address, port, len(hosts)))


def _check(hosts: Sequence[Host], script: str) -> None:
    """Run a script on all hosts at a time.

    :raises Failed: with the last line of each that it fails on
    """
    problems = []
    with contextlib.ExitStack() as stack:
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        asked = [(host, stack.enter_context(running(host.ssh(script), **streams))) for host in hosts]
        for host, process in asked:
            try:
                said = process.communicate(timeout=PATIENCE)[1].decode(errors="replace")
            except subprocess.TimeoutExpired:
                said = f"no answer in {PATIENCE:g} s"
            # None: it goes on, and ends with the block.
            if process.returncode != 0:
                last = (said.strip() or f"exit status {process.returncode}").splitlines()[-1]
                problems.append(f"{host.name}: no worker there: {last}")
    if problems:
        raise Failed("\n".join(problems))


@contextlib.contextmanager
def _connected(host: Host, script: str) -> Iterator[None]:
    """A script on a host until the end of the block; with a terminal, so that it ends with its ssh."""
    with running(host.ssh(script, "-tt"), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL):
        yield
