"""The case that started it: glance_store's sheepdog driver and what it does to read and to write an image.

Parameters:

``task``
    ``"cat"``: the original script, ``processutils.execute("cat datafile", shell=True)``;
    ``"read"``: ``collie vdi read`` of an image, ``chunk`` bytes per command, as the driver's ``get()`` does;
    ``"write"``: ``collie vdi write`` of an image, the same way, as its ``add()`` does
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

import hashlib
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.backends import dog
from benchmarks.harness.modes import MODES, REFERENCE_PIPE, Mode, check_fast, choice, enter, read_all, variants
from benchmarks.harness.worker import Payload, cache_directory, digest, measure, memory_directory, random_payload

IMAGE = "image"
#: Where the driver finds its cluster by default.
ADDRESS, PORT = "127.0.0.1", "7000"


def pieces(parameters: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Offset and length of each command's part of the image."""
    size, chunk = parameters["size"], parameters["chunk"]
    return [(offset, min(chunk, size - offset)) for offset in range(0, size, chunk)]


def collie(command: str, offset: int, length: int) -> list[str]:
    """The command line that the driver uses."""
    return ["collie", "vdi", command, "-a", ADDRESS, "-p", PORT, IMAGE, str(offset), str(length)]


def dog_environment(directory: Path, parameters: Mapping[str, Any]) -> dict[str, str]:
    """What makes a process find the stand-in of ``directory``, with the pauses that the parameters ask for.

    What is written replaces the objects of an image, as it did where the pauses were measured, or makes ``new`` ones.
    """
    if choice(parameters, "pauses", "real", "none") == "none":
        pauses: Mapping[str, Any] = dog.FAST
    else:
        pauses = {} if parameters.get("new") else {"new_ms": dog.STORE_MS}
    return dog.environment(directory, **pauses)


def readable_cluster(parameters: Mapping[str, Any]) -> tuple[Path, Payload]:
    """A cluster with a random image, kept between runs."""
    payload = random_payload(parameters["size"])
    # The stand-in is started by the interpreter that installed it.
    interpreter = hashlib.sha256(sys.executable.encode()).hexdigest()[:8]
    directory = cache_directory() / f"dog-{payload.size}-{interpreter}"
    dog.install(directory)
    image = dog.image_file(directory, IMAGE)
    if not image.exists():
        partial = dog.create_image(directory, f"{IMAGE}-{os.getpid()}", payload.path)
        os.replace(partial, image)
    return directory, payload


@contextmanager
def writable_cluster(parameters: Mapping[str, Any]) -> Iterator[tuple[Path, list[Payload]]]:
    """A cluster with an image of zeros, for this run only, and the files that are to be written to it."""
    sources = [random_payload(length, seed) for seed, (_, length) in enumerate(pieces(parameters))]
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=cache_directory(), prefix="dog-write-")))
        # Four times as much: the image, the zeros it is made of, and room for others.
        place = memory_directory(4 * parameters["size"]) or cache_directory()
        store = stack.enter_context(tempfile.TemporaryDirectory(dir=place))
        dog.install(directory)
        state = Path(dog.environment(directory)["DOG_STATE"])
        state.rmdir()
        state.symlink_to(store)
        zeros = directory / "zeros"
        with open(zeros, "wb") as file:
            file.truncate(parameters["size"])
        dog.create_image(directory, IMAGE, zeros)
        yield directory, sources


def written(directory: Path, sources: list[Payload]) -> bool:
    """Whether the image in the cluster is what the sources hold."""
    with open(dog.image_file(directory, IMAGE), "rb") as image:
        right = all(hashlib.sha256(image.read(source.size)).hexdigest() == source.sha256 for source in sources)
        return right and not image.read(1)


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
    task = TASKS[choice(parameters, "task", *TASKS)]
    enter(mode, parameters)
    result = task(parameters)
    check_fast(mode, parameters["size"])
    return result


def legacy(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Under eventlet, with the 1,024-byte loop of Python 2.7."""
    from benchmarks.suites.sheepdog import legacy

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


def reference_pipeline(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """``collie vdi read … | cat >/dev/null``, which keeps nothing, or ``cat piece | collie vdi write …``.

    The pipe is an enlarged one here too. What is read is checked in a second pass.
    """
    if choice(parameters, "task", "read", "write") == "read":
        directory, payload = readable_cluster(parameters)
        additions = dog_environment(directory, parameters)
        with measure() as measured:
            for offset, length in pieces(parameters):
                dog.time_read_into_cat(additions, IMAGE, offset, length, pipe_size=REFERENCE_PIPE)
        os.environ.update(additions)
        outputs = [read_all(collie("read", offset, length), REFERENCE_PIPE) for offset, length in pieces(parameters)]
        return measured.result(bytes=payload.size, verified=digest(outputs) == payload.sha256)
    with writable_cluster(parameters) as (directory, sources):
        additions = dog_environment(directory, parameters)
        with measure() as measured:
            for (offset, _), source in zip(pieces(parameters), sources, strict=True):
                dog.time_write_from_cat(additions, IMAGE, source.path, offset, pipe_size=REFERENCE_PIPE)
        return measured.result(bytes=parameters["size"], verified=written(directory, sources))


VARIANTS = variants(
    run,
    {
        "eventlet-legacy": legacy,
        "reference-readall": reference_readall,
        "reference-pipeline": reference_pipeline,
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
