"""The backend of a case: started before its first run, the same for all of its runs, stopped after the last one.

A server that each run started would be a cold one, and its start would take longer than the measurement. The engine
therefore runs it, in a separate process group, and passes its address to the runs in an environment variable
(:func:`benchmarks.harness.worker.surroundings`).
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from benchmarks.backends import BACKENDS, SERVICES, backend
from benchmarks.backends.base import BackendError
from benchmarks.harness.worker import CACHE_VARIABLE, cache_directory, memory_directory

#: Room that a backend needs, in payloads: the image that is read, the image that is written, and servers' copies.
ROOM = 6
#: Backends that keep metadata in extended attributes of their files.
NEED_ATTRIBUTES = ("swift",)
#: Types of file systems that are no disk.
IN_MEMORY = ("tmpfs", "ramfs")


def why_not(name: str, parameters: Mapping[str, Any] | None = None) -> str:
    """Why the backend cannot run here and how to install it; empty if it can, or if no backend is named."""
    if not name:
        return ""
    if name not in {**BACKENDS, **SERVICES}:
        return f"there is no backend {name!r}"
    try:
        return backend(name)(**(parameters or {})).why_not()
    except BackendError:
        # Unknown parameters: its start reports them.
        return ""


def data_directory(name: str, size: int, on_disk: bool = False) -> Path:
    """Where a backend keeps its files: in memory if it can, else beside the payloads.

    :param size: bytes of an image
    :param on_disk: beside the payloads, also if memory would do
    """
    memory = None if on_disk else memory_directory(ROOM * size)
    if memory is not None and (name not in NEED_ATTRIBUTES or _has_attributes(memory)):
        return memory
    return cache_directory()


def why_no_disk() -> str:
    """Why the files of a backend cannot be on a disk; empty if they can."""
    directory = cache_directory()
    if file_system(directory) in IN_MEMORY:
        return f"{directory} is in memory: {CACHE_VARIABLE} has to name a directory on a disk"
    return ""


def file_system(directory: Path) -> str:
    """The type of file system that a directory is on, such as ``ext4``; empty if the system does not tell."""
    place = directory.resolve()
    found = [each for each in psutil.disk_partitions(all=True) if place.is_relative_to(each.mountpoint)]
    # The last of those that are mounted at the same place hides the others.
    return max(reversed(found), key=lambda each: len(each.mountpoint)).fstype if found else ""


def described(directory: Path) -> str:
    """A directory and the type of its file system, for tables."""
    kind = file_system(directory)
    return f"{directory} ({kind})" if kind else str(directory)


def _has_attributes(directory: Path) -> bool:
    """Whether files of ``directory`` can have extended attributes; tmpfs has them since Linux 6.6."""
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        try:
            os.setxattr(file.name, "user.benchmark", b"1")
        except OSError:
            return False
    return True


@contextlib.contextmanager
def running(name: str, parameters: Mapping[str, Any], directory: Path) -> Iterator[dict[str, Any]]:
    """The backend, running; yields what its users have to know, plain data.

    ``access`` is how to reach it, ``pids`` are its processes, which pay for the server's CPU time.

    :raises benchmarks.backends.base.BackendError: if it does not start
    """
    with backend(name)(directory=directory, **parameters) as server:
        yield {"access": server.access(), "pids": server.pids()}
