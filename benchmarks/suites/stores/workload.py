"""glance_store's drivers: getting and adding an image, through ``glance_store.multi_backend``, as glance does.

The backend runs outside, for all runs of a case (:mod:`benchmarks.harness.servers`). The measurement is of a service
that has been at work: each run first moves a small image, so that imports, tables of botocore and the memory of the
first chunks are not in it. glance_store itself makes a new driver, connection or client for each operation; that is in
it.

A get reads and discards, and reads once more for the SHA-256. An add is right if it returns the known size, checksum
and multihash, and if what is read back has the known SHA-256; then the image is deleted.

Parameters:

``task``
    ``"get"`` or ``"add"``
``size``
    bytes of an image
``most``
    of ``size`` where more of it would be another case
``images``
    how often a get reads the image, one time after the other
``options``
    of the store's group in glance's configuration
``settings``
    of fastio

Results beside the usual ones: ``chunks``, how many the driver's iterator gave, or how many times it read from the
image's data; ``server_cpu_seconds`` of the backend's processes; under eventlet ``p99_ms``, ``worst_ms`` and others of a
heartbeat greenlet, see :mod:`benchmarks.harness.probes`.

``reference`` is the backend's own client, mostly one of a few lines of C, at a get. ``limit-sha512`` only reads the
image and hashes it on one core: no row that computes the hash can be faster.
"""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from benchmarks.backends.base import server_environment
from benchmarks.harness import probes
from benchmarks.harness.modes import MIB, MODES, Mode, choice, variants, warmed
from benchmarks.harness.worker import MULTIHASH, command_digest, random_payload, surroundings
from benchmarks.operations.base import content
from benchmarks.operations.stores import Adding, Getting, hashed, opened_store, store_add, store_get

#: Bytes of the image that a run moves before it is measured: several chunks. Their memory is then not new to the
#: process. Reading 256 MiB takes about 50 ms, and each of the first two chunks of 1 MiB took 1.3 ms in new memory.
SMALL = 4 * MIB


def size_of(parameters: Mapping[str, Any]) -> int:
    return min(parameters["size"], parameters.get("most", parameters["size"]))


def run(mode: Mode, parameters: Mapping[str, Any]) -> dict[str, Any]:
    task = choice(parameters, "task", "get", "add")
    payload = warmed(random_payload(size_of(parameters)))
    context = {**parameters, "images": surroundings()["prepared"]["images"] if task == "get" else {}}
    operation: Callable[..., AbstractContextManager[Getting | Adding]] = store_get if task == "get" else store_add
    with operation(mode, context) as work:
        work.once(min(SMALL, payload.size))
        before, count = work.pieces, parameters.get("images", 1)
        work.before(payload.size, count)
        with probes.measured(mode.green) as figures:
            moved = sum(work.once(payload.size) for _ in range(count))
        chunks = work.pieces - before
        found = work.sha256(payload.size) if isinstance(work, Getting) else work.stored()
    verified = moved == count * payload.size and found == payload.sha256
    return {**figures, "bytes": moved, "verified": verified, "chunks": chunks}


def limit_sha512(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """One core that reads the image and computes its multihash, and does nothing else."""
    choice(parameters, "task", "add")
    return hashed(warmed(random_payload(size_of(parameters))), MULTIHASH)


def reference(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The backend's own client."""
    from benchmarks.suites.stores.references import COMMANDS

    choice(parameters, "task", "get")
    payload, told = warmed(random_payload(size_of(parameters))), surroundings()
    url, count = told["prepared"]["images"][str(payload.size)], parameters.get("images", 1)
    command = functools.partial(COMMANDS[told["access"]["backend"]], told["access"], payload.size)
    several, environment = command(*[url] * count), server_environment()
    with probes.measured() as figures:
        subprocess.run(several, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment, check=True)
    verified = command_digest(command(url), env=environment) == payload.sha256
    return {**figures, "bytes": count * payload.size, "verified": verified}


def prepare(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Put the images that a get reads into the backend, unpatched; returns their URLs by size."""
    if choice(parameters, "task", "get", "add") == "add":
        return {}
    size = size_of(parameters)
    with opened_store(MODES["native-stock"], parameters) as store:
        return {"images": {each: store.place(content(random_payload(each))) for each in {size, min(SMALL, size)}}}


VARIANTS = variants(
    run,
    {
        "limit-sha512": limit_sha512,
        "reference": reference,
        "prepare": prepare,
    },
)
