"""What the commands cost that users run: curl, ``glance`` and ``openstack``, as a whole and without their start.

Each run starts its command twice, first for one byte, and then for all of them. The first is the start: the
interpreter, the imports, fastio's patches, and the requests that come before the data. ``start_seconds`` and
``start_cpu_seconds`` are its. ``transfer_seconds`` and ``transfer_cpu_seconds`` are what the second takes beyond it.
``server_load`` and ``server_cpu_seconds`` are of the server and of nginx in front of it.

Tasks:

``image-save``
    from glance to /dev/null. In one more run, which is not measured, the image goes to a pipe, and its SHA-512 is
    compared. ``glance`` and ``openstack`` compute it as well, and curl does not.
``image-create``
    from a file to glance. Its ``os_hash_value`` and its size are compared.
``object-save``
    from Swift to /dev/null, checked as the image is. The token has been fetched before.
"""

import json
import subprocess
import urllib.request
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness.modes import choice, warmed
from benchmarks.harness.worker import digests, random_payload, surroundings
from benchmarks.operations.services import CURL, Glance, put
from benchmarks.suites.glance_client.timing import Source, environment, source, timed, written
from benchmarks.suites.stores.references import Swift, run

#: Bytes of the image whose transfer is the start of a command and nothing else.
LEAST = 1
_BARE = ("--disk-format", "raw", "--container-format", "bare")
#: In the Python of the commands, under ``fastio run``: prints the patches of clients that are in effect.
_PATCHED = """\
import glanceclient, json, openstack.connection
import glanceclient.common.http, openstack.image._download, openstackclient.api.object_store_v1
import fastio
entries = [each for each in fastio.status().entries if each.name.startswith(("glanceclient", "openstack", "urllib3"))]
print(json.dumps([[each.name, each.in_effect and not each.left_alone] for each in entries]))
"""


class Command(NamedTuple):
    """One of the programs, with or without fastio."""

    program: str
    fast: bool = False


COMMANDS = {
    "curl": Command("curl"),
    **{
        f"{program}-{'fastio' if fast else 'stock'}": Command(program, fast)
        for program in ("glance", "openstack")
        for fast in (False, True)
    },
}


def started(command: Command, python: str, arguments: Sequence[str]) -> list[str]:
    """What a user types, as a list."""
    if command.program == "curl":
        return [*CURL, *arguments]
    programs = Path(python).parent
    made = [str(programs / command.program), *arguments]
    return [str(programs / "fastio"), "run", "--", *made] if command.fast else made


def trusting(option: str, where: Source) -> list[str]:
    return [option, where.certificate] if where.certificate else []


def glance(where: Source) -> list[str]:
    """The options of ``glance`` that come first."""
    return ["--os-image-url", where.url, "--os-auth-token", "none", *trusting("--os-cacert", where)]


def openstack(where: Source, *more: str) -> list[str]:
    """The options of ``openstack`` that come first, without an identity service."""
    kind = [] if more else ["--os-auth-type", "none", "--os-endpoint", where.url]
    return [*kind, *more, *trusting("--os-cacert", where)]


def image_save(program: str, where: Source, image: str, path: str) -> list[str]:
    if program == "curl":
        return [*trusting("--cacert", where), "--output", path, f"{where.url}/v2/images/{image}/file"]
    if program == "glance":
        return [*glance(where), "image-download", "--file", path, image]
    return [*openstack(where), "image", "save", "--file", path, image]


def image_create(program: str, where: Source, image: str, path: str) -> list[str]:
    if program == "curl":
        # No "Expect: 100-continue", for whose answer curl would wait.
        headers = ["--header", "Expect:", "--header", "Content-Type: application/octet-stream"]
        to = f"{where.url}/v2/images/{image}/file"
        return [*trusting("--cacert", where), *headers, "--upload-file", path, to]
    if program == "glance":
        return [*glance(where), "image-create", *_BARE, "--id", image, "--name", "image", "--file", path]
    return [*openstack(where), "image", "create", *_BARE, "--id", image, "--file", path, "image"]


def object_save(program: str, where: Source, name: str, path: str) -> list[str]:
    """``where`` is that of the proxy."""
    prepared = surroundings()["prepared"]
    account = f"{where.url}{prepared['account']}"
    container, token = prepared["container"], prepared["token"]
    if program == "curl":
        header = ["--header", f"X-Auth-Token: {token}"]
        return [*trusting("--cacert", where), *header, "--output", path, f"{account}/{container}/{name}"]
    login = ("--os-auth-type", "admin_token", "--os-endpoint", account, "--os-token", token)
    return [*openstack(where, *login), "object", "save", "--file", path, container, name]


def save(
    arguments: Callable[[str, Source, str, str], list[str]], command: Command, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    where, prepared = source(parameters), surroundings()["prepared"]

    def to(path: str, image: str) -> list[str]:
        return started(command, parameters["python"], arguments(command.program, where, image, path))

    start = timed(to("/dev/null", prepared["least"]))
    figures = timed(to("/dev/null", prepared["image"]), surroundings()["pids"])
    verified = written(to("/dev/stdout", prepared["image"])) == prepared["multihash"]
    return beyond(figures, start, parameters["size"], verified)


def create(command: Command, parameters: Mapping[str, Any]) -> dict[str, Any]:
    where, service = source(parameters), Glance(surroundings()["access"])

    def created(size: int, servers: Sequence[int]) -> tuple[dict[str, Any], bool]:
        payload, image = warmed(random_payload(size)), str(uuid.uuid4())
        if command.program == "curl":
            service.new(id=image)
        arguments = image_create(command.program, where, image, str(payload.path))
        figures = timed(started(command, parameters["python"], arguments), servers)
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


TASKS: dict[str, Callable[[Command, Mapping[str, Any]], dict[str, Any]]] = {
    "image-save": lambda command, parameters: save(image_save, command, parameters),
    "image-create": create,
    "object-save": lambda command, parameters: save(object_save, command, parameters),
}


def run_command(command: Command, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return TASKS[choice(parameters, "task", *TASKS)](command, parameters)


def prepare_commands(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Give the server what is saved, as a whole and of one byte.

    :raises RuntimeError: if fastio's patches are not in effect in the commands: stock would have the name of fastio
    """
    task = choice(parameters, "task", *TASKS)
    require_patches(parameters["python"])
    payload, least = warmed(random_payload(parameters["size"])), random_payload(LEAST)
    prepared = {"image": "", "multihash": digests(payload).multihash}
    access = surroundings()["access"]
    if task == "image-save":
        service = Glance(access)
        for name, each in (("image", payload), ("least", least)):
            prepared[name] = service.new()
            put(each, service.place(prepared[name]))
    elif task == "object-save":
        swift = Swift(access, payload.size)
        for name, each in (("image", payload), ("least", least)):
            prepared[name] = name
            run([*CURL, *swift.arguments, "--header", "Expect:", "--upload-file", str(each.path), swift.where(name)])
        prepared.update(login(access), container=access["container"])
    return prepared


def login(access: Mapping[str, Any]) -> dict[str, str]:
    """A token of Swift's, and the path of the account."""
    headers = {"X-Auth-User": access["user"], "X-Auth-Key": access["key"]}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(access["auth_v1"], headers=headers), timeout=60) as answer:
        path = answer.headers["X-Storage-Url"].removeprefix(access["url"])
        return {"token": answer.headers["X-Auth-Token"], "account": path}


def require_patches(python: str) -> None:
    command = [str(Path(python).parent / "fastio"), "run", "--", python, "-c", _PATCHED]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    found = json.loads(done.stdout) if done.returncode == 0 else []
    if not found or not all(in_effect for _, in_effect in found):
        raise RuntimeError(f"fastio's patches are not all in effect in the commands: {found}\n{done.stderr}")
