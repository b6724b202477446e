"""The case that started it: glance_store's sheepdog driver and what it does to read and to write an image.

Parameters:

``task``
    ``"cat"``: the original script, ``processutils.execute("cat datafile", shell=True)``;
    ``"read"``: ``collie vdi read`` of an image, ``chunk`` bytes per command, as the driver's ``get()`` does;
    ``"write"``: ``collie vdi write`` of an image, the same way, as its ``add()`` does;
    ``"get"``, ``"add"``: the driver of today, :mod:`benchmarks.suites.sheepdog.driver`
``size``
    bytes of the file or image
``chunk``
    bytes per command of ``read`` and ``write``; the driver's are 64 MiB
``pauses``
    ``"real"``: ``collie`` takes the time that a real one takes to start, to fetch and to store;
    ``"none"``: it takes none on purpose, so that processes and pipes are all that is left
``settings``
    of fastio

``collie`` is the stand-in of :mod:`benchmarks.backends.dog`. Everything goes through ``processutils.execute()``, except
for the references, which have no Python in the way of the bytes.
"""

import functools
import os
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.harness.modes import MODES, REFERENCE_PIPE, Mode, check_fast, choice, enter, read_all, variants
from benchmarks.harness.worker import Payload, digest, measure, random_payload
from benchmarks.suites.sheepdog import driver, legacy
from benchmarks.suites.sheepdog.cluster import (
    collie,
    dog_environment,
    pieces,
    readable_cluster,
    reference_pipeline,
    writable_cluster,
    written,
)


def reading(parameters: Mapping[str, Any]) -> tuple[Payload, list[list[str]], dict[str, str]]:
    """Return the image, the commands that read it, and their environment."""
    if choice(parameters, "task", "cat", "read") == "cat":
        payload = random_payload(parameters["size"])
        # Popen's command line with shell=True.
        return payload, [["/bin/sh", "-c", f"cat {shlex.quote(str(payload.path))}"]], {}
    directory, payload = readable_cluster(parameters)
    return payload, [collie("read", *piece) for piece in pieces(parameters)], dog_environment(directory, parameters)


def execute(command: list[str]) -> bytes:
    from oslo_concurrency import processutils

    return processutils.execute(*command, binary=True)[0]


def run_read(parameters: Mapping[str, Any], read: Callable[[list[str]], bytes] = execute) -> dict[str, Any]:
    """Read the file, or the image chunk by chunk. All of it is kept, until it is hashed after the measurement."""
    payload, commands, environment = reading(parameters)
    os.environ.update(environment)
    with measure() as measured:
        outputs = list(map(read, commands))
    return measured.result(bytes=sum(map(len, outputs)), verified=digest(outputs) == payload.sha256)


def run_write(parameters: Mapping[str, Any]) -> dict[str, Any]:
    from oslo_concurrency import processutils

    with writable_cluster(parameters) as (directory, sources):
        os.environ.update(dog_environment(directory, parameters))
        inputs = [source.path.read_bytes() for source in sources]
        with measure() as measured:
            for (offset, length), data in zip(pieces(parameters), inputs, strict=True):
                processutils.execute(*collie("write", offset, length), process_input=data, binary=True)
        return measured.result(bytes=sum(map(len, inputs)), verified=written(directory, sources))


def run(mode: Mode, parameters: Mapping[str, Any]) -> dict[str, Any]:
    task = choice(parameters, "task", "cat", "read", "write", "get", "add")
    if task in ("get", "add"):
        return driver.run(mode, parameters)
    enter(mode, parameters)
    result = run_write(parameters) if task == "write" else run_read(parameters)
    check_fast(mode, parameters["size"])
    return result


def run_legacy(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Under eventlet, with the 1,024-byte loop of Python 2.7."""
    enter(MODES["eventlet-stock"], parameters)
    legacy.install()
    return run_read(parameters)


VARIANTS = variants(
    run,
    {
        "eventlet-legacy": run_legacy,
        # Each output by one readall() in C, into one bytes object, from an enlarged pipe.
        "reference-readall": functools.partial(run_read, read=lambda command: read_all(command, REFERENCE_PIPE)),
        "reference-pipeline": reference_pipeline,
    },
)
