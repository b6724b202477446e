"""The backend of a case: started before its first run, the same for all of its runs, stopped after the last one.

A server that each run started would be a cold one, and its start would take longer than what is measured. So the engine
runs it, in a process group of its own, and tells the runs how to reach it in an environment variable
(:func:`benchmarks.harness.worker.surroundings`).
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.backends import BACKENDS, SERVICES, backend
from benchmarks.backends.base import BackendError
from benchmarks.harness.worker import cache_directory, memory_directory

#: Room that a backend needs, in payloads: the image that is read, the image that is written, and servers' copies.
ROOM = 6
#: Backends that keep metadata in extended attributes of their files (of the S3 servers versitygw does).
NEED_ATTRIBUTES = ("swift", "s3")


def why_not(name: str, parameters: Mapping[str, Any] | None = None) -> str:
    """Why the backend cannot run here and how to install it; empty if it can, or if no backend is named."""
    if not name:
        return ""
    if name not in {**BACKENDS, **SERVICES}:
        return f"there is no backend {name!r}"
    try:
        return backend(name)(**(parameters or {})).why_not()
    except BackendError:
        # Parameters that it does not have: its start says so.
        return ""


def data_directory(name: str, size: int) -> Path:
    """Where a backend keeps its files: in memory if it can, else beside the payloads.

    :param size: bytes of an image
    """
    memory = memory_directory(ROOM * size)
    if memory is not None and (name not in NEED_ATTRIBUTES or _has_attributes(memory)):
        return memory
    return cache_directory()


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
