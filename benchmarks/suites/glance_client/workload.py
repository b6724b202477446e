"""What a download costs the client: curl, glanceclient's command and its API, as GNU time gives it.

Every row is a command. ``seconds`` and ``cpu_seconds`` (user and system) are of all of it, from its exec to its end,
``load_percent`` is their ratio, which GNU time calls "percent of CPU this job got". For the API and the hashing
``transfer_seconds`` and ``transfer_cpu_seconds`` are without imports and the start of the interpreter. ``load`` is the
CPU load over time: pairs of seconds and percent of one processor, since the pair before.

The image goes to /dev/null. In a second run of the same command, which is not measured, it goes to a pipe, and its
SHA-512 is compared with glance's ``os_hash_value``.

Parameters:

``size``
    bytes of the image
``scheme``
    ``"http"``, straight from glance, or ``"https"``, from nginx in front of it
``python``
    the interpreter that has glanceclient
"""

import functools
import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.backends.base import server_environment
from benchmarks.harness.modes import choice, warmed
from benchmarks.harness.worker import cache_directory, command_digest, random_payload, surroundings
from benchmarks.suites.glance.workload import Glance, WrongData, put
from benchmarks.suites.glance_client import script as glance_client_script
from benchmarks.suites.stores.references import CURL
from benchmarks.suites.stores.workload import MULTIHASH, digests, server_cpu_seconds

#: Seconds between two samples of the load.
SAMPLE = 0.1
#: requests prefers these over the certificate that it is given.
CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


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


class Source(NamedTuple):
    """Where the image is."""

    url: str
    image: str
    #: of the server, for HTTPS
    certificate: str | None


def source(parameters: Mapping[str, Any]) -> Source:
    told = surroundings()
    image = told["prepared"]["image"]
    if choice(parameters, "scheme", "http", "https") == "http":
        return Source(told["access"]["url"], image, None)
    return Source(told["access"]["https_url"], image, told["access"]["certificate"])


def environment() -> dict[str, str]:
    """Of the commands. glanceclient's keeps schemas in the home directory."""
    home = cache_directory() / "glanceclient"
    home.mkdir(exist_ok=True)
    inherited = server_environment({"HOME": str(home), "PYTHONWARNINGS": "ignore"})
    return {name: value for name, value in inherited.items() if name not in CA_VARIABLES}


def run_curl(parameters: Mapping[str, Any]) -> dict[str, Any]:
    where = source(parameters)
    trust = ["--cacert", where.certificate] if where.certificate else []

    def command(path: str, report: str) -> list[str]:
        return [*CURL, *trust, "--output", path, f"{where.url}/v2/images/{where.image}/file"]

    return measured(command, parameters["size"])


def run_client(client: Client, parameters: Mapping[str, Any]) -> dict[str, Any]:
    make = glance_command if client.command else api_command
    return measured(functools.partial(make, client, parameters["python"], source(parameters)), parameters["size"])


def glance_command(client: Client, python: str, where: Source, path: str, report: str) -> list[str]:
    programs = Path(python).parent
    trust = ["--os-cacert", where.certificate] if where.certificate else []
    command = [
        str(programs / "glance"), "--os-image-url", where.url, "--os-auth-token", "none", *trust,
        "image-download", "--file", path, where.image,
    ]  # fmt: skip
    return [str(programs / "fastio"), "run", "--", *command] if client.fast else command


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
        figures = timed(command("/dev/null", str(report)))
        if report.exists():
            figures.update(json.loads(report.read_text()))
        verified = not check or _written(command("/dev/stdout", str(report))) == surroundings()["prepared"]["multihash"]
    return {**figures, "bytes": size, "verified": verified}


def _written(command: Sequence[str]) -> str:
    """The SHA-512 of what the command writes."""
    return command_digest(command, MULTIHASH, env=environment(), stderr=subprocess.DEVNULL)


def timed(command: Sequence[str]) -> dict[str, Any]:
    """Time and CPU time of a command, and its load over time.

    :raises RuntimeError: if it fails, with what it said
    """
    with tempfile.TemporaryFile() as said:
        start = time.perf_counter()
        process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=said)
        samples = [(0.0, 0.0)]
        try:
            with os.fdopen(os.pidfd_open(process.pid), "rb", buffering=0) as ended:
                while not select.select([ended], [], [], SAMPLE)[0]:
                    # Of one that ends just now the system may tell nothing any more.
                    spent = max(samples[-1][1], server_cpu_seconds([process.pid]))
                    samples.append((time.perf_counter() - start, spent))
        finally:
            _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise RuntimeError(f"{' '.join(command)}: exit status {process.returncode}\n{said.read().decode()}")
    cpu = usage.ru_utime + usage.ru_stime
    samples.append((seconds, cpu))
    return {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "user_seconds": usage.ru_utime,
        "system_seconds": usage.ru_stime,
        "load_percent": 100 * cpu / seconds,
        "load": load(samples),
    }


def load(samples: Sequence[tuple[float, float]]) -> list[list[float]]:
    """Seconds, and percent of one processor since the sample before, of samples of seconds and CPU seconds."""
    pairs = zip(samples, samples[1:])  # noqa: B905 (the second is one shorter)
    return [
        [round(after, 3), round(100 * max(0.0, spent - before) / (after - start), 1)]
        for (start, before), (after, spent) in pairs
        if after > start
    ]


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
}
