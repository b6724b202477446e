"""Functions that read and write images of a cluster of the stand-in for sheepdog, and the parameters of its time."""

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.backends import dog
from benchmarks.harness.modes import REFERENCE_PIPE, choice, read_all
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
    """Return the environment in which a process finds the stand-in of ``directory``, with the parameters' pauses.

    A write replaces the objects of an image, like where the pauses were measured, or makes ``new`` ones.
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


def reference_pipeline(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """``collie vdi read … | cat >/dev/null``, which keeps nothing, or ``cat piece | collie vdi write …``.

    The pipe is an enlarged one here too. The bytes read are checked in a second pass. For the driver's tasks there is
    one command for all of the image.
    """
    task = choice(parameters, "task", "read", "write", "get", "add")
    if task in ("get", "add"):
        parameters = {**parameters, "chunk": parameters["size"], "new": True}
    if task in ("read", "get"):
        directory, payload = readable_cluster(parameters)
        additions = dog_environment(directory, parameters)
        with measure() as measured:
            for offset, length in pieces(parameters):
                dog.time_pipeline(collie("read", offset, length), ["cat"], additions, REFERENCE_PIPE)
        os.environ.update(additions)
        outputs = [read_all(collie("read", offset, length), REFERENCE_PIPE) for offset, length in pieces(parameters)]
        return measured.result(bytes=payload.size, verified=digest(outputs) == payload.sha256)
    with writable_cluster(parameters) as (directory, sources):
        additions = dog_environment(directory, parameters)
        with measure() as measured:
            for (offset, length), source in zip(pieces(parameters), sources, strict=True):
                write = collie("write", offset, length)
                dog.time_pipeline(["cat", str(source.path)], write, additions, REFERENCE_PIPE)
        return measured.result(bytes=parameters["size"], verified=written(directory, sources))
