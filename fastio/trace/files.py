"""The files of one process: ``HOST-PID-START-N.jsonl``, each of a bounded size, and all of them together too."""

from __future__ import annotations

import io
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


class Files:
    """What a process writes; the newest files stay if all together are too large.

    :param directory: where the files are
    :param size: bytes of a file, give or take what is written at a time
    :param total: bytes of all files of the process together
    """

    def __init__(self, directory: str, size: int, total: int, component: str) -> None:
        self._directory = Path(directory)
        self._size = size
        self._total = total
        # What it takes to find the versions, imports above all, is nothing for the writer's thread.
        self._about = {"component": component or _guess(), "program": _program(), "boot": boot_id()}
        self._versions = versions()
        self._host = socket.gethostname()
        self._prefix = f"{_plain(self._host)}-{os.getpid()}-{time.time_ns() // 1_000_000}"
        self._number = 0
        self._file: io.FileIO | None = None
        self._written = 0
        #: full files: path, bytes, events
        self._full: deque[tuple[Path, int, int]] = deque()
        self._events = 0

    def write(self, lines: bytes, events: int) -> int:
        """Write ``lines`` with so many events; returns how many events were deleted with old files.

        After an error nothing of ``lines`` is in the file.

        :raises OSError: if there is no room, or the directory is gone
        """
        if self._file is None:
            self._file = self._open()
        position = self._written
        try:
            _write_all(self._file, lines)
        except OSError:
            self._file.seek(position)
            self._file.truncate()
            raise
        self._written += len(lines)
        self._events += events
        return self._rotate() if self._written >= self._size else 0

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _path(self) -> Path:
        return self._directory / f"{self._prefix}-{self._number}.jsonl"

    def _open(self) -> io.FileIO:
        file = io.FileIO(self._path(), "xb", opener=_create)
        self._written = self._events = 0
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
            _write_all(file, head)
        except OSError:
            # A file without its first line could not be read.
            file.close()
            self._path().unlink(missing_ok=True)
            raise
        self._written = len(head)
        return file

    def _rotate(self) -> int:
        self.close()
        self._full.append((self._path(), self._written, self._events))
        self._number += 1
        deleted = 0
        while len(self._full) > 1 and sum(size for _, size, _ in self._full) + self._size > self._total:
            path, _, events = self._full.popleft()
            path.unlink(missing_ok=True)
            deleted += events
        return deleted


def _create(path: str, flags: int) -> int:
    # The errors of a service are nobody's business but the operator's, whose umask may allow less.
    return posix.open(path, flags, 0o640)


def _write_all(file: io.FileIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) or 0 :]


def _plain(host: str) -> str:
    """A host's name as part of a file's name."""
    return re.sub(r"[^A-Za-z0-9._]", "_", host)[:64] or "host"


def _guess() -> str:
    """What the process is, if its first event comes before that is known, such as of a child at its start."""
    return "glance-api" if "glance.common.wsgi" in sys.modules else _program()


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


def versions() -> dict[str, str]:
    """Releases of what has been imported."""
    found = {"fastio": VERSION, "python": ".".join(map(str, sys.version_info[:3]))}
    for module, distribution in (
        ("glance", "glance"),
        ("glance_store", "glance_store"),
        ("eventlet", "eventlet"),
        ("glanceclient", "python-glanceclient"),
    ):
        if module in sys.modules:
            try:
                found[module] = metadata.version(distribution)
            except metadata.PackageNotFoundError:
                pass
    return found
