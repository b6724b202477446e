"""The client's cost of an image: curl, ``glance``, ``openstack`` and glanceclient's API, as GNU time says.

Every row is a command. ``seconds`` and ``cpu_seconds`` (user and system) are of all of it, from its exec to its end;
``load_percent`` is their ratio, which GNU time calls "percent of CPU this job got". ``server_cpu_seconds`` are those of
the server and of nginx in front of it.

Each run starts its command twice, first for one byte, and then for all of them. The first is the start: the
interpreter, the imports, fastio's patches, and the requests that come before the data. ``start_seconds`` and
``start_cpu_seconds`` are its. ``transfer_seconds`` and ``transfer_cpu_seconds`` are what the second takes beyond it; of
the API and of the hashing alone, what the transfer itself takes.

Parameters:

``task``
    ``"image-save"``: from glance to /dev/null. In one more run, which is not measured, the image goes to a pipe, and
    its SHA-512 is compared. All clients but curl compute it as well, unless the row is ``unverified``.
    ``"image-create"``: from a file to glance. Its ``os_hash_value`` and its size are compared.
``size``
    bytes of the image
``scheme``
    ``"http"``, straight from the server, or ``"https"``, from nginx in front of it
``python``
    the interpreter that has glanceclient, and the commands beside it
"""

import functools
import json
import os
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.backends.base import server_environment
from benchmarks.harness.modes import MODES, choice, warmed
from benchmarks.harness.probes import server_cpu_seconds
from benchmarks.harness.worker import (
    MULTIHASH,
    cache_directory,
    command_digest,
    digests,
    random_payload,
    surroundings,
)
from benchmarks.operations.services import CURL, Glance, put
from benchmarks.operations.stores import hashed

#: Bytes of the image whose transfer is the start of a command and nothing else.
LEAST = 1
#: requests prefers these over the certificate that it is given.
CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
#: In the Python of the commands, under ``fastio run``: prints the patches of clients that are in effect.
_PATCHED = """\
import glanceclient, json, openstack.connection
import glanceclient.common.http, openstack.image._download
import fastio
entries = [each for each in fastio.status().entries if each.name.startswith(("glanceclient", "openstack", "urllib3"))]
print(json.dumps([[each.name, each.in_effect and not each.left_alone] for each in entries]))
"""


class Source(NamedTuple):
    """Where the images are."""

    url: str
    #: of the server, for HTTPS
    certificate: str | None


def source(parameters: Mapping[str, Any]) -> Source:
    access = surroundings()["access"]
    if choice(parameters, "scheme", "http", "https") == "http":
        return Source(access["url"], None)
    return Source(access["https_url"], access["certificate"])


class Row(NamedTuple):
    """One of the programs, or a script that uses glanceclient's API; with or without fastio."""

    program: str
    fast: bool = False
    #: of the script, one of :data:`benchmarks.harness.modes.MODES`
    mode: str = ""
    #: whether it compares the image with its hash, which is glanceclient's default
    verify: bool = True

    def command(self, parameters: Mapping[str, Any], image: str, path: str) -> list[str]:
        """Return a user's command line, as a list."""
        where, programs = source(parameters), Path(parameters["python"]).parent
        told = {**surroundings()["prepared"], "url": where.url, "image": image, "path": path}
        option = "--cacert" if self.program == "curl" else "--os-cacert"
        arguments = [word.format(**told) for word in ARGUMENTS[parameters["task"]][self.program].split()]
        arguments = [*([option, where.certificate] if where.certificate else []), *arguments]
        if self.program == "curl":
            return [*CURL, *arguments]
        made = [str(programs / self.program), *arguments]
        return [str(programs / "fastio"), "run", "--", *made] if self.fast else made


COMMANDS = {
    "curl": Row("curl"),
    **{
        f"{program}-{'fastio' if fast else 'stock'}": Row(program, fast)
        for program in ("glance", "openstack")
        for fast in (False, True)
    },
}
APIS = {
    f"api-{mode.removeprefix('native-')}{'-unverified' * (not verify)}": Row("api", mode=mode, verify=verify)
    for verify in (True, False)
    for mode in MODES
}


_GLANCE = "--os-image-url {url} --os-auth-token none"
#: Without an identity service.
_OPENSTACK = "--os-auth-type none --os-endpoint {url}"
_BARE = "--disk-format raw --container-format bare"
#: Of each task and program the words after the certificate that is trusted.
ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "image-save": {
        "curl": "--output {path} {url}/v2/images/{image}/file",
        "glance": f"{_GLANCE} image-download --file {{path}} {{image}}",
        "openstack": f"{_OPENSTACK} image save --file {{path}} {{image}}",
    },
    "image-create": {
        # No "Expect: 100-continue", for whose answer curl would wait.
        "curl": "--header Expect: --header Content-Type:application/octet-stream --upload-file {path} "
        "{url}/v2/images/{image}/file",
        "glance": f"{_GLANCE} image-create {_BARE} --id {{image}} --name image --file {{path}}",
        "openstack": f"{_OPENSTACK} image create {_BARE} --id {{image}} --file {{path}} image",
    },
}


def save(row: Row, parameters: Mapping[str, Any]) -> dict[str, Any]:
    where, prepared = source(parameters), surroundings()["prepared"]

    def to(path: str, image: str) -> list[str]:
        if row.program != "api":
            return row.command(parameters, image, path)
        told: dict[str, Any] = {"url": where.url, "image": image, "cacert": where.certificate, "path": path}
        told |= {"report": report.name, "mode": row.mode, "verify": row.verify}
        return [parameters["python"], "-m", "benchmarks.suites.clients.script", json.dumps(told)]

    with tempfile.NamedTemporaryFile() as report:
        start = timed(to("/dev/null", prepared["least"]))
        figures = timed(to("/dev/null", prepared["image"]), surroundings()["pids"])
        own = json.loads(report.read() or b"{}")
        verified = written(to("/dev/stdout", prepared["image"])) == prepared["multihash"]
    return {**beyond(figures, start, parameters["size"], verified), **own}


def hash_alone(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The SHA-512 of the image, from a file, and nothing else."""
    payload = warmed(random_payload(parameters["size"]))
    found = hashed(payload, MULTIHASH)
    return {**found, **{f"transfer_{name}": found[name] for name in ("seconds", "cpu_seconds")}}


def create(row: Row, parameters: Mapping[str, Any]) -> dict[str, Any]:
    service = Glance(surroundings()["access"])

    def created(size: int, servers: Sequence[int]) -> tuple[dict[str, Any], bool]:
        payload, image = warmed(random_payload(size)), str(uuid.uuid4())
        if row.program == "curl":
            service.new(id=image)
        figures = timed(row.command(parameters, image, str(payload.path)), servers)
        verified = (service.size(image), service.multihash(image)) == (size, digests(payload).multihash)
        service.delete(image)
        return figures, verified

    start, first = created(LEAST, ())
    figures, verified = created(parameters["size"], surroundings()["pids"])
    return beyond(figures, start, parameters["size"], first and verified)


def beyond(figures: dict[str, Any], start: Mapping[str, Any], size: int, verified: bool) -> dict[str, Any]:
    """The figures of a run, with those of its start, and what it has taken beyond that."""
    found = {**figures, "bytes": size, "verified": verified}
    for name in ("seconds", "cpu_seconds"):
        found[f"start_{name}"] = start[name]
        found[f"transfer_{name}"] = max(0.0, figures[name] - start[name])
    return found


TASKS: dict[str, Callable[[Row, Mapping[str, Any]], dict[str, Any]]] = {
    "image-save": save,
    "image-create": create,
}


def run_row(row: Row, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return TASKS[choice(parameters, "task", *TASKS)](row, parameters)


def prepare(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Give the server what is saved, as a whole and of one byte.

    :raises RuntimeError: if fastio's patches are not in effect in the commands: stock would have the name of fastio
    """
    task = choice(parameters, "task", *TASKS)
    require_patches(parameters["python"])
    payload, least = warmed(random_payload(parameters["size"])), random_payload(LEAST)
    prepared = {"image": "", "multihash": digests(payload).multihash}
    if task == "image-save":
        service = Glance(surroundings()["access"])
        for name, each in (("image", payload), ("least", least)):
            prepared[name] = service.new()
            put(each, service.place(prepared[name]))
    return prepared


def require_patches(python: str) -> None:
    command = [str(Path(python).parent / "fastio"), "run", "--", python, "-c", _PATCHED]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    found = json.loads(done.stdout) if done.returncode == 0 else []
    if not found or not all(in_effect for _, in_effect in found):
        raise RuntimeError(f"fastio's patches are not all in effect in the commands: {found}\n{done.stderr}")


def environment() -> dict[str, str]:
    """Of the commands: glanceclient's keeps schemas in the home directory, and nothing else configures openstack's."""
    home = cache_directory() / "glanceclient"
    home.mkdir(exist_ok=True)
    inherited = server_environment({"HOME": str(home), "PYTHONWARNINGS": "ignore"})
    return {name: value for name, value in inherited.items() if name not in CA_VARIABLES and not name.startswith("OS_")}


def written(command: Sequence[str]) -> str:
    """The SHA-512 of what the command writes."""
    return command_digest(command, MULTIHASH, env=environment(), stderr=subprocess.DEVNULL)


def timed(command: Sequence[str], servers: Sequence[int] = ()) -> dict[str, Any]:
    """Time and CPU time of a command; with ``servers`` also the CPU time of these processes.

    :raises RuntimeError: if it fails, with what it said
    """
    with tempfile.TemporaryFile() as said:
        before = server_cpu_seconds(servers)
        start = time.perf_counter()
        process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        server = {"server_cpu_seconds": server_cpu_seconds(servers) - before} if servers else {}
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise RuntimeError(f"{' '.join(command)}: exit status {process.returncode}\n{said.read().decode()}")
    cpu = usage.ru_utime + usage.ru_stime
    return {
        **server,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "user_seconds": usage.ru_utime,
        "system_seconds": usage.ru_stime,
        "load_percent": 100 * cpu / seconds,
    }


VARIANTS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    **{name: functools.partial(run_row, row) for name, row in {**COMMANDS, **APIS}.items()},
    "limit-sha512": hash_alone,
    "prepare": prepare,
}
