"""Downloads and uploads through a real glance-api, and what other requests wait for meanwhile.

The servers run outside, for all runs of a case, and only the one that is measured has work. Their stores are
directories, which the check of an upload looks into.

A download is right if every transfer had the image's size, and one more, which is not measured, the SHA-512 that
glance has as ``os_hash_value``. That one is the payload's, which :func:`prepare` checks. An upload is right if glance's
``os_hash_value`` and the stored file both have the payload's.

Parameters:

``task``
    ``"download"`` or ``"upload"``; with the parameter ``rate``, :mod:`benchmarks.suites.glance.slow` runs instead.
    ``"import"``: :mod:`benchmarks.suites.glance.imports`
``size``
    bytes of an image
``clients``
    concurrent transfers, each of a separate image if it is an upload
``seconds``
    a client whose download ends earlier downloads again; 0: everyone downloads once
``requests``
    1: other requests are sent meanwhile, see :mod:`benchmarks.harness.other_requests`
``server``
    name of the server among those ``beside`` the case's backend; the backend itself by default
``source``
    address that downloads are asked for from, instead of the server's own
``chunked``
    1: an upload has no Content-Length
``settled``
    1: what earlier runs wrote is on the disk before an upload begins

Results beside the usual ones: ``server_cpu_seconds``; with ``requests`` their ``p50_ms``, ``p99_ms``, ``worst_ms`` and
number, and ``mb_s``. ``cpu_seconds`` is the clients': threads that download, or curl that uploads. ``generator_cpu`` is
the share of a processor that one client of downloads used.
"""

import concurrent.futures
import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.harness import http_client, probes
from benchmarks.harness.modes import MIB, choice, warmed
from benchmarks.harness.other_requests import Requests
from benchmarks.harness.worker import digests, random_payload, running, surroundings
from benchmarks.operations.services import Glance, Nginx, WrongData, downloaded_sha512, given, put, sha512
from benchmarks.operations.stores import hashed
from benchmarks.suites.glance import imports, slow


def server(parameters: Mapping[str, Any]) -> tuple[Glance | Nginx, list[int]]:
    """The server that is measured, and its processes."""
    found = running(parameters.get("server"))
    return (Nginx if found["access"]["backend"] == "http" else Glance)(found["access"]), found["pids"]


@contextlib.contextmanager
def measured(parameters: Mapping[str, Any], service: Glance | Nginx, pids: list[int]) -> Iterator[dict[str, Any]]:
    """Measure the block, with other requests meanwhile if they are asked for; ``bytes`` is for the block to say."""
    with contextlib.ExitStack() as stack:
        requests = stack.enter_context(Requests(service.port, service.cheap)) if parameters.get("requests") else None
        with probes.measured(pids=pids, waiting=True) as figures:
            yield figures
        if requests is not None:
            figures.update(requests.stop(), mb_s=figures["bytes"] / figures["seconds"] / 1e6)


def at_once(work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """``work`` on all of the items, each in a separate thread."""
    with concurrent.futures.ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(work, items))


def download(parameters: Mapping[str, Any]) -> dict[str, Any]:
    source, pids = server(parameters)
    image = surroundings()["prepared"]["images"][parameters.get("server") or ""]
    place, known = source.place(image), surroundings()["prepared"]["multihash"]
    address, clients = parameters.get("source", ""), parameters.get("clients", 1)

    def client(deadline: float) -> list[int]:
        sizes: list[int] = []
        while not sizes or time.monotonic() < deadline:
            sizes.append(http_client.fetched(place, MIB, source=address))
        return sizes

    with measured(parameters, source, pids) as figures:
        deadline = time.monotonic() + parameters.get("seconds", 0)
        sizes: list[int] = sum(at_once(client, [deadline] * clients), [])
        figures["bytes"] = sum(sizes)
    options = ["--interface", address] if address else []
    verified = set(sizes) == {parameters["size"]} and downloaded_sha512(place, *options) == known
    figures["generator_cpu"] = figures["cpu_seconds"] / figures["seconds"] / clients
    return {**figures, "verified": verified, "transfers": len(sizes)}


def upload(parameters: Mapping[str, Any]) -> dict[str, Any]:
    service, pids = server(parameters)
    payload = warmed(random_payload(parameters["size"]))
    images = [service.new() for _ in range(parameters.get("clients", 1))]
    settle(parameters)
    try:
        with measured(parameters, service, pids) as figures:
            at_once(lambda image: put(payload, service.place(image), bool(parameters.get("chunked"))), images)
            figures["bytes"] = payload.size * len(images)
        known = digests(payload).multihash
        verified = all(service.multihash(image) == known for image in images)
        # Two concurrently: a hasher uses a processor, and runs without the lock of the interpreter.
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            verified &= set(pool.map(lambda image: sha512(service.stored(image)), images)) == {known}
    finally:
        for image in images:
            service.delete(image)
    return {**figures, "verified": verified, "transfers": len(images)}


def settle(parameters: Mapping[str, Any]) -> None:
    """Have the disk write what earlier runs left to it, where that is asked for."""
    if parameters.get("settled"):
        os.sync()


def prepare(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Give every server the image that is downloaded; returns its identifier by server, and its SHA-512.

    nginx serves the very file of the case's backend. Which servers beside that one do not take it, and why, is in
    ``failed``.
    """
    if choice(parameters, "task", "download", "upload", "import") != "download":
        return {"failed": {}}
    payload = warmed(random_payload(parameters["size"]))
    known = digests(payload).multihash
    told = surroundings()
    images = {"": given(Glance(told["access"]), payload, known)}
    failed = {}
    for name, each in told["beside"].items():
        access = each.get("access", {})
        if "images" in access:
            try:
                images[name] = given(Glance(access), payload, known)
            except (OSError, RuntimeError, WrongData, subprocess.SubprocessError) as error:
                failed[name] = f"it does not take its image: {error}"
        elif access:
            images[name] = "image"
            Nginx(access).stored("image").symlink_to(Glance(told["access"]).stored(images[""]))
    return {"images": images, "multihash": known, "failed": failed}


def run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    task = choice(parameters, "task", "download", "upload", "import")
    if task == "import":
        return imports.run(parameters)
    if "rate" in parameters:
        return {"download": slow.download, "upload": slow.upload}[task](*server(parameters), parameters)
    return {"download": download, "upload": upload}[task](parameters)


def parts(parameters: Mapping[str, Any], *names: str, written: bool = True) -> dict[str, Any]:
    """Measure the cost of an upload without a server. (A copy is that from the socket.)"""
    payload = warmed(random_payload(parameters["size"]))
    settle(parameters)
    return hashed(payload, *names, place=surroundings()["access"]["images"] if written else None)


VARIANTS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "transfer": run,
    "prepare": prepare,
    "reference-parts": lambda parameters: parts(parameters, "md5", "sha512"),
    "reference-md5": lambda parameters: parts(parameters, "md5", written=False),
    "reference-sha512": lambda parameters: parts(parameters, "sha512", written=False),
}
