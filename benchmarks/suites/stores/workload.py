"""glance_store's drivers: getting and adding an image, through ``glance_store.multi_backend``, as glance does.

The backend runs outside, for all runs of a case (:mod:`benchmarks.harness.servers`). What is measured happens in a
service that has been at work: each run first moves a small image, so that imports, tables of botocore and the memory
of the first chunks are not in it. glance_store itself makes a new driver, connection or client for each operation; that
is in it.

A get reads and discards, and reads again for the SHA-256 once it has been measured. An add is right if it returns the
known size, checksum and multihash, and if what is read back has the known SHA-256; then the image is deleted.

Parameters:

``task``
    ``"get"`` or ``"add"``
``size``
    bytes of an image
``most``
    of ``size`` where more of it would be another case
``images``
    how many such images a get reads, one after the other
``options``
    of the store's group in glance's configuration
``settings``
    of fastio

Results beside the usual ones: ``chunks``, how many the driver's iterator gave, or how many times it read from the
image's data; ``server_cpu_seconds`` of the backend's processes; under eventlet ``p99_ms``, ``worst_ms`` and others of a
heartbeat greenlet, see :mod:`benchmarks.harness.probes`.

``reference`` is the backend's own client, mostly one of a few lines of C, at the same task. ``limit-sha512`` only reads
the image and hashes it on one core: no row that computes the hash can be faster. ``reference-sha512sum`` is coreutils'
command for it; ``no-hashing`` is the stock driver with hash objects that do nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness import probes
from benchmarks.harness.modes import KIB, MIB, MODES, Mode, choice, variants, warmed
from benchmarks.harness.worker import MULTIHASH, Payload, digest, digests, measure, random_payload, surroundings
from benchmarks.operations.stores import Source, get, opened_store

#: Bytes of the image that a run moves before it is measured: several chunks. Their memory is then not new to the
#: process. Reading 256 MiB takes about 50 ms, and each of the first two chunks of 1 MiB took 1.3 ms in new memory.
SMALL = 4 * MIB


def size_of(parameters: Mapping[str, Any]) -> int:
    return min(parameters["size"], parameters.get("most", parameters["size"]))


def run_get(mode: Mode, parameters: Mapping[str, Any]) -> dict[str, Any]:
    payload = random_payload(size_of(parameters))
    prepared = surroundings()["prepared"]
    with opened_store(mode, parameters) as store:
        for _ in get(store, prepared["small"]):
            pass
        moved = chunks = 0
        with probes.measured(mode.green) as figures:
            for url in prepared["urls"]:
                for chunk in get(store, url):
                    chunks += 1
                    moved += len(chunk)
        # The images of one case all have the same bytes.
        verified = {digest(get(store, url)) for url in prepared["urls"]} == {payload.sha256}
    return {**figures, "bytes": moved, "verified": verified, "chunks": chunks}


def run_add(mode: Mode, parameters: Mapping[str, Any], hashed: bool = True) -> dict[str, Any]:
    payload = warmed(random_payload(size_of(parameters)))
    known = digests(payload)
    small = random_payload(min(SMALL, payload.size))
    with opened_store(mode, parameters) as store:
        with contextlib.closing(Source(small)) as source:
            store.delete(store.add(source, size=small.size).url)
        with contextlib.closing(Source(payload)) as source, probes.measured(mode.green) as figures:
            added = store.add(source, size=payload.size, hashing=MULTIHASH)
        try:
            verified = added.size == payload.size and digest(get(store, added.url)) == payload.sha256
        finally:
            store.delete(added.url)
    if hashed:
        verified &= (added.checksum, added.multihash) == known
    return {**figures, "bytes": payload.size, "verified": verified, "chunks": source.reads}


def run(mode: Mode, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {"get": run_get, "add": run_add}[choice(parameters, "task", "get", "add")](mode, parameters)


def no_hashing(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The stock driver, natively, where md5 and the multihash cost nothing."""
    choice(parameters, "task", "add")
    from glance_store.common import utils

    class NoHash:
        def update(self, data: bytes) -> None:
            pass

        def hexdigest(self) -> str:
            return ""

    utils.get_hasher = lambda *args, **kwargs: NoHash()
    return run_add(MODES["native-stock"], parameters, hashed=False)


def limit_sha512(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """One core that reads the image and computes its multihash, and does nothing else."""
    choice(parameters, "task", "add")
    payload = warmed(random_payload(size_of(parameters)))
    hasher = hashlib.new(MULTIHASH)
    with contextlib.closing(Source(payload)) as source, measure() as measured:
        while piece := source.read(256 * KIB):
            hasher.update(piece)
        multihash = hasher.hexdigest()
    return measured.result(bytes=payload.size, verified=multihash == digests(payload).multihash)


def reference_sha512sum(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The same by coreutils, whose code for it is slower than OpenSSL's."""
    import subprocess

    choice(parameters, "task", "add")
    payload = warmed(random_payload(size_of(parameters)))
    with measure() as measured:
        said = subprocess.run(["sha512sum", payload.path], stdout=subprocess.PIPE, check=True).stdout
    return measured.result(bytes=payload.size, verified=said.split()[0].decode() == digests(payload).multihash)


def reference(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The backend's own client."""
    from benchmarks.suites.stores import references

    payload = warmed(random_payload(size_of(parameters)))
    told = surroundings()
    client = references.CLIENTS[told["access"]["backend"]](told["access"], payload.size)
    if choice(parameters, "task", "get", "add") == "get":
        places = [client.where(url) for url in told["prepared"]["urls"]]
        command = client.read(places)
        with probes.measured() as figures:
            references.run(command)
        verified = {client.sha256(place) for place in places} == {payload.sha256}
        return {**figures, "bytes": len(places) * payload.size, "verified": verified}
    command = client.write(payload.path)
    with probes.measured() as figures, open(payload.path, "rb") as file:
        references.run(command, file.fileno())
    try:
        return {**figures, "bytes": payload.size, "verified": client.sha256(client.place()) == payload.sha256}
    finally:
        references.run(client.delete())


def prepare(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Put the images that a get reads into the backend; returns their URLs, and the one of a small image.

    glance_store puts them there, unpatched; into what it can only read from they are copied.
    """
    if choice(parameters, "task", "get", "add") == "add":
        return {}
    payload = random_payload(size_of(parameters))
    small = random_payload(min(SMALL, payload.size))
    add = _placed if "place" in surroundings()["access"] else _added
    *urls, small_url = add([*itertools.repeat(payload, parameters.get("images", 1)), small], parameters)
    return {"urls": urls, "small": small_url}


def _placed(payloads: list[Payload], parameters: Mapping[str, Any]) -> list[str]:
    import shutil

    place = surroundings()["access"]["place"]
    names = [f"image-{number}" for number in range(len(payloads))]
    for name, payload in zip(names, payloads, strict=True):
        shutil.copyfile(payload.path, Path(place["directory"]) / name)
    return [f"{place['url']}/{name}" for name in names]


def _added(payloads: list[Payload], parameters: Mapping[str, Any]) -> list[str]:
    urls = []
    with opened_store(MODES["native-stock"], parameters) as store:
        for payload in payloads:
            with contextlib.closing(Source(payload)) as source:
                urls.append(store.add(source, size=payload.size).url)
    return urls


VARIANTS = variants(
    run,
    {
        "no-hashing": no_hashing,
        "limit-sha512": limit_sha512,
        "reference-sha512sum": reference_sha512sum,
        "reference": reference,
        "prepare": prepare,
    },
)
