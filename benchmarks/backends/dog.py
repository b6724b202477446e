"""Set up and use the stand-in for sheepdog's ``dog`` command (:mod:`benchmarks.backends.dog_command`).

>>> bin_directory = install(directory)                           # doctest: +SKIP
>>> create_image(directory, "image", "datafile")                 # doctest: +SKIP
>>> os.environ.update(environment(directory, **FAST))            # doctest: +SKIP
>>> subprocess.run(["collie", "vdi", "read", "image"])           # doctest: +SKIP
"""

import fcntl
import os
import py_compile
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.backends import dog_command

PROGRAMS = ("dog", "collie")

STORE_MS = dog_command.STORE_MS

#: Pauses for :func:`environment`: storage that costs nothing, so that only the cost of processes and pipes is left.
FAST: Mapping[str, Any] = {"start_ms": 0, "fetch_ms": 0, "store_ms": 0, "new_ms": 0}

# Only the launcher can tell when the command began, and whether its parent ignored SIGPIPE: Python always does.
_LAUNCHER = """\
#!/bin/sh
read -r spent rest 2>/dev/null </proc/self/schedstat || spent=0
while read -r key ignored; do
    [ "$key" = SigIgn: ] && break
done </proc/self/status
exec {python} -ISs {command} "$ignored" "$spent" "$@"
"""


def install(directory: str | os.PathLike[str]) -> Path:
    """Make the executables ``dog`` and ``collie``, and an empty store, in *directory*; return the former's path.

    They run on the current interpreter; a store that is there already is kept.
    """
    directory = Path(directory).absolute()
    binaries = directory / "bin"
    binaries.mkdir(parents=True, exist_ok=True)
    _state(directory).mkdir(exist_ok=True)
    # Compiled in advance: compiling at each start would cost more than the start itself.
    command = directory / "dog_command.pyc"
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(dog_command.__file__, str(command), doraise=True, invalidation_mode=mode)
    for program in PROGRAMS:
        launcher = binaries / program
        launcher.write_text(_LAUNCHER.format(python=shlex.quote(sys.executable), command=shlex.quote(str(command))))
        launcher.chmod(0o755)
    return binaries


def environment(directory: str | os.PathLike[str], **settings: float | str) -> dict[str, str]:
    """What to add to ``os.environ`` so that ``dog`` and ``collie`` are found, with the store in *directory*.

    Each setting is the variable of its name (``start_ms``: ``DOG_START_MS`` ...; see
    :mod:`benchmarks.backends.dog_command`); the default is the real one's figure.
    """
    directory = Path(directory).absolute()
    given = {f"DOG_{name.upper()}": str(value) for name, value in settings.items()}
    path = os.pathsep.join([str(directory / "bin"), os.environ.get("PATH", os.defpath)])
    return {**given, "DOG_STATE": str(_state(directory)), "PATH": path}


def image_file(directory: str | os.PathLike[str], name: str | bytes) -> Path:
    """The file that holds the image *name* in the store of *directory*, byte for byte."""
    return Path(dog_command.image_path(str(_state(Path(directory).absolute())), os.fsencode(name)))


def orphans(directory: str | os.PathLike[str]) -> list[str]:
    """The ids of the objects that belong to no image: what a ``write`` has left that was killed at the wrong time."""
    return sorted(path.stem for path in _state(Path(directory).absolute()).glob(f"*{dog_command.ORPHAN}"))


def create_image(directory: str | os.PathLike[str], name: str | bytes, source: str | os.PathLike[str]) -> Path:
    """Create the image *name* with the content and the exact size of the file *source*, without any pause.

    Holes of *source* become holes of the image, which read as zeros without being fetched. Raises FileExistsError
    when there is such an image already. Returns the image's file.
    """
    image = image_file(directory, name)
    image.parent.mkdir(parents=True, exist_ok=True)
    image.touch(exist_ok=False)
    subprocess.run(["cp", "--", os.fspath(source), str(image)], check=True)
    return image


def time_pipeline(
    producer: Sequence[str], consumer: Sequence[str], additions: Mapping[str, str], pipe_size: int
) -> float:
    """Seconds of ``PRODUCER | CONSUMER >/dev/null``: moving an image without any Python of the parent.

    *additions* come from :func:`environment`; *pipe_size* is the pipe's capacity in bytes. Raises CalledProcessError
    when either command fails.
    """
    env = {**os.environ, **additions}
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, pipe_size)
    started = time.perf_counter()
    first = subprocess.Popen(producer, env=env, stdin=subprocess.DEVNULL, stdout=writer)
    os.close(writer)
    second = subprocess.Popen(consumer, env=env, stdin=reader, stdout=subprocess.DEVNULL)
    os.close(reader)
    statuses = first.wait(), second.wait()
    elapsed = time.perf_counter() - started
    # The consumer first: when it fails, the producer often dies of that.
    for command, status in ((consumer, statuses[1]), (producer, statuses[0])):
        if status:
            raise subprocess.CalledProcessError(status, command)
    return elapsed


def _state(directory: Path) -> Path:
    return directory / "vdi"
