"""The files of one process: ``HOST-PID-START-N.jsonl``, each of a bounded size, and all of them together too."""

import functools
import json
import os
import posix  # what os has, also where eventlet has replaced it
import re
import shutil
import socket
import sys
import time
from collections import deque
from importlib import metadata
from pathlib import Path
from typing import Any

from fastio.trace import redaction
from fastio.version import VERSION

_COMPACT = (",", ":")


def dump(value: Any) -> bytes:
    """One line."""
    return json.dumps(value, separators=_COMPACT).encode() + b"\n"


#: As that of Python's "xb".
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
#: Only the operator may read a service's errors. The umask may allow less.
_PERMISSIONS = 0o640


class Native:
    """How a writer makes the calls that may wait: as they are. Its thread has no hub, or nobody else is to run.

    Each may raise an exception instead, in other modes also one that is no ``OSError``.
    """

    #: events that are turned into text at a time
    batch = 256

    def open(self, path: str, flags: int, permissions: int) -> int:
        """As ``os.open``."""
        return posix.open(path, flags, permissions)

    def write(self, fd: int, data: bytes, start: int, offset: int) -> int:
        """Write the bytes of ``data`` from ``start`` on at ``offset``; returns how many."""
        return posix.pwrite(fd, memoryview(data)[start:], offset)

    def truncate(self, fd: int, size: int) -> None:
        """As ``os.ftruncate``."""
        posix.ftruncate(fd, size)

    def close(self, fd: int) -> None:
        """As ``os.close``; the file is none of the caller's any more, whatever becomes of it."""
        posix.close(fd)

    def unlink(self, path: str) -> None:
        """Remove a file, if it is there."""
        try:
            posix.unlink(path)
        except FileNotFoundError:
            pass

    def yield_when_due(self) -> None:
        """Called every so often."""


class Files:
    """What a process writes; the newest files stay if all together are too large.

    A writer may be left for good within each call of its mode, and another one then makes the same call of this object
    again: nothing is told as done before it is.

    :param directory: where the files are
    :param size: bytes of a file, give or take what is written at a time
    :param total: bytes of all files of the process together
    """

    def __init__(self, directory: str, size: int, total: int, component: str) -> None:
        self._directory = directory
        self._size = size
        self._total = total
        self._component = component
        self._about: dict[str, Any] = {}
        self._versions: dict[str, str] = {}
        self._host = socket.gethostname()
        self._prefix = f"{_plain(self._host)}-{os.getpid()}-{time.time_ns() // 1_000_000}"
        self._number = 0
        self._fd: int | None = None
        #: the file that a writer has begun to open
        self._opening = ""
        self._written = 0
        #: full files: path, bytes, events
        self._full: deque[tuple[str, int, int]] = deque()
        self._events = 0
        #: events that were in files that have been removed
        self.deleted = 0

    def write(self, lines: bytes, events: int, mode: Native) -> None:
        """Write ``lines`` with so many events.

        After an error nothing of ``lines`` is in the file.

        :raises OSError: if there is no room, or the directory is gone
        """
        if self._fd is None:
            self._open(mode)
        assert self._fd is not None
        try:
            self._write_all(self._fd, lines, self._written, mode)
        except OSError:
            self._cut_off(mode)
            raise
        self._written += len(lines)
        self._events += events

    def _cut_off(self, mode: Native) -> None:
        """Have the file end where the last write did."""
        # A writer that takes over meanwhile begins another file: of this one its lines would be cut off.
        fd, self._fd = self._fd, None
        assert fd is not None
        try:
            mode.truncate(fd, self._written)
        except BaseException:
            mode.close(fd)
            raise
        self._fd = fd

    def rotate(self, mode: Native) -> None:
        """Begin another file if this one is full, and remove those that are too many."""
        if self._written < self._size or self._fd is None:
            return
        self._full.append((self._path(), self._written, self._events))
        self._number += 1
        self.close(mode)
        while len(self._full) > 1 and sum(size for _, size, _ in self._full) + self._size > self._total:
            path, _, events = self._full.popleft()
            self.deleted += events
            mode.unlink(path)

    def close(self, mode: Native) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            mode.close(fd)

    def _path(self) -> str:
        return os.path.join(self._directory, f"{self._prefix}-{self._number}.jsonl")

    def _open(self, mode: Native) -> None:
        if not self._about:
            self._versions.update(_versions())
            program = _program()
            component = self._component or ("glance-api" if "glance.common.wsgi" in sys.modules else program)
            self._about = {
                "component": component,
                "program": program,
                "boot": boot_id(),
                "os": sys.platform,
                "runtime": sys.implementation.name,
                "arch": os.uname().machine,
                "kernel": os.uname().release,
                "namespace": pid_namespace(),
            }
        while True:
            path = self._path()
            left, self._opening = self._opening, path
            try:
                fd = mode.open(path, _FLAGS, _PERMISSIONS)
                break
            except FileExistsError:
                # By a writer that was left meanwhile. If it was at this very point, nothing but a head is in the file.
                self._number += 1
                if left == path:
                    mode.unlink(path)
        about = {
            "fastio-trace": 1,
            "host": self._host,
            "pid": os.getpid(),
            "parent": os.getppid(),
            **self._about,
            "monotonic": time.monotonic_ns(),
            "wall": time.time_ns(),
            "file": self._number,
        }
        head = dump(redaction.head(about, self._versions))
        try:
            self._write_all(fd, head, 0, mode)
        except BaseException as error:
            try:
                if isinstance(error, OSError):
                    # A file without its first line could not be read.
                    mode.unlink(path)
            finally:
                mode.close(fd)
            raise
        self._written, self._events, self._fd, self._opening = len(head), 0, fd, ""

    def _write_all(self, fd: int, data: bytes, offset: int, mode: Native) -> None:
        done = 0
        while done < len(data):
            done += mode.write(fd, data, done, offset + done)


def _plain(host: str) -> str:
    """A host's name as part of a file's name."""
    return re.sub(r"[^A-Za-z0-9._]", "_", host)[:64] or "host"


def _program() -> str:
    """The name of the program, if there is one: who starts Python can put anything there."""
    name = sys.argv[0] if sys.argv else ""
    return os.path.basename(name) if os.path.isfile(name) or shutil.which(name) else ""


def boot_id() -> str:
    """What tells apart the times since the start of two machines, or of one before and after it was started anew."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def pid_namespace() -> int:
    """What tells apart two places in which one number of a process means two processes; 0 where that is not known."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


#: What is worth telling of: a module that shows that it is in use, and the distribution that it comes with.
_DISTRIBUTIONS = {
    "glance": "glance",
    "glance_store": "glance_store",
    "eventlet": "eventlet",
    "glanceclient": "python-glanceclient",
}


@functools.cache
def _release(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def look_up_releases() -> None:
    """Read from files what a writer has to know: in a hub it cannot wait for that."""
    for distribution in _DISTRIBUTIONS.values():
        _release(distribution)


def _versions() -> dict[str, str]:
    """Releases of what has been imported."""
    found = {"fastio": VERSION, "python": ".".join(map(str, sys.version_info[:3]))}
    for module, distribution in _DISTRIBUTIONS.items():
        release = _release(distribution) if module in sys.modules else None
        if release is not None:
            found[module] = release
    return found
