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

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.harness.modes import MODES, REFERENCE_PIPE, Mode, check_fast, choice, enter, read_all, variants
from benchmarks.harness.worker import digest, measure, random_payload
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


def run_cat(parameters: Mapping[str, Any]) -> dict[str, Any]:
    from oslo_concurrency import processutils

    payload = random_payload(parameters["size"])
    command = f"cat {shlex.quote(str(payload.path))}"
    with measure() as measured:
        output, _ = processutils.execute(command, shell=True, binary=True)
    return measured.result(bytes=len(output), verified=digest([output]) == payload.sha256)


def run_read(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Read the image chunk by chunk. All of them are kept, until they are hashed after the measurement."""
    from oslo_concurrency import processutils

    directory, payload = readable_cluster(parameters)
    os.environ.update(dog_environment(directory, parameters))
    outputs = []
    with measure() as measured:
        for offset, length in pieces(parameters):
            outputs.append(processutils.execute(*collie("read", offset, length), binary=True)[0])
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


TASKS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {"cat": run_cat, "read": run_read, "write": run_write}


def run(mode: Mode, parameters: Mapping[str, Any]) -> dict[str, Any]:
    name = choice(parameters, "task", *TASKS, "get", "add")
    if name not in TASKS:
        return driver.run(mode, parameters)
    enter(mode, parameters)
    result = TASKS[name](parameters)
    check_fast(mode, parameters["size"])
    return result


def run_legacy(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Under eventlet, with the 1,024-byte loop of Python 2.7."""
    task = TASKS[choice(parameters, "task", "cat", "read")]
    enter(MODES["eventlet-stock"], parameters)
    legacy.install()
    return task(parameters)


def reference_readall(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Each output by one ``readall()`` in C, into one bytes object, from an enlarged pipe."""
    if choice(parameters, "task", "cat", "read") == "cat":
        payload = random_payload(parameters["size"])
        commands = [["sh", "-c", f"cat {shlex.quote(str(payload.path))}"]]
    else:
        directory, payload = readable_cluster(parameters)
        os.environ.update(dog_environment(directory, parameters))
        commands = [collie("read", offset, length) for offset, length in pieces(parameters)]
    with measure() as measured:
        outputs = [read_all(command, REFERENCE_PIPE) for command in commands]
    return measured.result(bytes=sum(map(len, outputs)), verified=digest(outputs) == payload.sha256)


def reference(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Without Python in the way, as :func:`benchmarks.suites.sheepdog.cluster.reference_pipeline` does it."""
    whole = choice(parameters, "task", "read", "write", "get", "add") in ("get", "add")
    return driver.reference(parameters) if whole else reference_pipeline(parameters)


VARIANTS = variants(
    run,
    {
        "eventlet-legacy": run_legacy,
        "reference-readall": reference_readall,
        "reference-pipeline": reference,
    },
)


def prepare(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What the script for Python 2.7, which cannot import this module, needs: payload, commands, environment."""
    if choice(parameters, "task", "cat", "read") == "cat":
        payload = random_payload(parameters["size"])
        return {"sha256": payload.sha256, "commands": [f"cat {shlex.quote(str(payload.path))}"], "environment": {}}
    directory, payload = readable_cluster(parameters)
    return {
        "sha256": payload.sha256,
        "commands": [collie("read", offset, length) for offset, length in pieces(parameters)],
        "environment": dog_environment(directory, parameters),
    }


if __name__ == "__main__":
    print(json.dumps(prepare(json.loads(sys.argv[1]))))
