"""What a download costs the client: curl, glanceclient's command and its API, as GNU time gives it.

Every row is a command. ``seconds`` and ``cpu_seconds`` (user and system) are of all of it, from its exec to its end,
``load_percent`` is their ratio, which GNU time calls "percent of CPU this job got". For the API and the hashing
``transfer_seconds`` and ``transfer_cpu_seconds`` are without imports and the start of the interpreter. ``load`` is the
CPU load over time: pairs of seconds and percent of one processor, since the pair before. ``server_load`` is the
server's, with nginx in front of it.

The image goes to /dev/null. In a second run of the same command, which is not measured, it goes to a pipe, and its
SHA-512 is compared with glance's ``os_hash_value``.

Parameters:

``size``
    bytes of the image
``scheme``
    ``"http"``, straight from glance, or ``"https"``, from nginx in front of it
``python``
    the interpreter that has glanceclient, and ``openstack`` beside it

The variants ``command-*`` are those of :mod:`benchmarks.suites.glance_client.commands`, with its parameter ``task``.
"""

import functools
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness.modes import warmed
from benchmarks.harness.worker import digests, random_payload, surroundings
from benchmarks.operations.services import Glance, WrongData, put
from benchmarks.suites.glance_client import script as glance_client_script
from benchmarks.suites.glance_client.commands import (
    COMMANDS,
    Command,
    image_save,
    prepare_commands,
    run_command,
    started,
)
from benchmarks.suites.glance_client.timing import Source, source, timed, written


class Client(NamedTuple):
    """How glanceclient is used."""

    #: its command, or its API
    command: bool = False
    fast: bool = False
    green: bool = False
    #: compare the image with its hash, which is glanceclient's default
    verify: bool = True


CLIENTS = {
    "cli-stock": Client(command=True),
    "cli-fastio": Client(command=True, fast=True),
    "api-stock": Client(),
    "api-fastio": Client(fast=True),
    "api-eventlet-stock": Client(green=True),
    "api-eventlet-fastio": Client(green=True, fast=True),
    "api-stock-unverified": Client(verify=False),
    "api-fastio-unverified": Client(verify=False, fast=True),
    "api-eventlet-stock-unverified": Client(green=True, verify=False),
    "api-eventlet-fastio-unverified": Client(green=True, verify=False, fast=True),
}


def run_curl(parameters: Mapping[str, Any]) -> dict[str, Any]:
    where = source(parameters)

    def command(path: str, report: str) -> list[str]:
        return started(COMMANDS["curl"], "", image_save("curl", where, where.image, path))

    return measured(command, parameters["size"])


def run_client(client: Client, parameters: Mapping[str, Any]) -> dict[str, Any]:
    make = glance_command if client.command else api_command
    return measured(functools.partial(make, client, parameters["python"], source(parameters)), parameters["size"])


def glance_command(client: Client, python: str, where: Source, path: str, report: str) -> list[str]:
    return started(Command("glance", client.fast), python, image_save("glance", where, where.image, path))


def api_command(client: Client, python: str, where: Source, path: str, report: str) -> list[str]:
    told = {
        "url": where.url, "image": where.image, "cacert": where.certificate, "path": path, "report": report,
        "verify": client.verify, "green": client.green, "fast": client.fast,
    }  # fmt: skip
    return [python, glance_client_script.__file__, json.dumps(told)]


def hash_alone(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The SHA-512 of the image, from a file, and nothing else."""
    payload = warmed(random_payload(parameters["size"]))

    def command(path: str, report: str) -> list[str]:
        told = {"hash": str(payload.path), "report": report}
        return [parameters["python"], glance_client_script.__file__, json.dumps(told)]

    return measured(command, payload.size, check=False)


def measured(command: Callable[[str, str], Sequence[str]], size: int, check: bool = True) -> dict[str, Any]:
    """Run the command, which is made for a path and the file of its report, and once more to see what it writes."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report"
        figures = timed(command("/dev/null", str(report)), surroundings()["pids"] if check else ())
        if report.exists():
            figures.update(json.loads(report.read_text()))
        verified = not check or written(command("/dev/stdout", str(report))) == surroundings()["prepared"]["multihash"]
    return {**figures, "bytes": size, "verified": verified}


def prepare(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Upload the image; returns its identifier and its SHA-512, which is also the payload's."""
    payload = warmed(random_payload(parameters["size"]))
    service = Glance(surroundings()["access"])
    image = service.new()
    put(payload, service.place(image))
    multihash = service.multihash(image)
    if multihash != digests(payload).multihash:
        raise WrongData("os_hash_value is not the payload's SHA-512")
    return {"image": image, "multihash": multihash}


VARIANTS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "curl": run_curl,
    **{name: functools.partial(run_client, client) for name, client in CLIENTS.items()},
    "limit-sha512": hash_alone,
    "prepare": prepare,
    **{f"command-{name}": functools.partial(run_command, command) for name, command in COMMANDS.items()},
    "prepare-commands": prepare_commands,
}
