"""What the processes of a service did, together: each keeps a file with its counts in a private directory.

The counts of a process that has ended go on counting: the next process that finds its file adopts them. It renames the
file, which only one can do, adds the counts to its own, and removes the file. Its own file names the last one that it
adopted, so that nothing is lost or counted twice wherever a process is killed. Nothing here takes a lock.
"""

from __future__ import annotations

import contextlib
import json
import os
import posix
from collections.abc import Iterator
from typing import Any

from fastio.io.replace import replace
from fastio.watching import metrics
from fastio.watching.metrics import Metrics
from fastio.watching.processes import identity, is_gone

_END = ".json"
#: Between the name of a file, and who has adopted it.
_BY = ".json.by-"
#: Looks at a directory that changes meanwhile.
_LOOKS = 100


class Shared:
    """The file of this process, in ``directory``."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._own = identity()
        self._adopted = ""
        self._before: dict[str, Any] | None = None

    def publish(self, found: Metrics, last: bool = False) -> None:
        """Write the counts, with those of the processes that have ended."""
        self._write(found, last)
        if not last:
            for name in _names(self._directory):
                if name.endswith(_END) and is_gone(name.removesuffix(_END)):
                    self._adopt(name.removesuffix(_END), found)

    def _write(self, found: Metrics, here: bool = False) -> None:
        counts = metrics.total([found.to_dict(), *([self._before] if self._before else [])])
        data = {"counts": counts, "adopted": self._adopted}
        replace(self._path(self._own + _END), json.dumps(data).encode(), 0o600, here)

    def _adopt(self, name: str, found: Metrics) -> None:
        claimed = self._path(name + _BY + self._own)
        try:
            posix.rename(self._path(name + _END), claimed)
        except FileNotFoundError:
            # Another process is quicker.
            return
        record = _read(claimed)
        for theirs in _names(self._directory):
            # It was killed within these lines.
            if theirs.endswith(_BY + name):
                its = theirs.partition(_BY)[0]
                if its == record["adopted"]:
                    posix.unlink(self._path(theirs))
                else:
                    posix.rename(self._path(theirs), self._path(its + _END))
        before, last = self._before, self._adopted
        self._before = metrics.total([record["counts"], *([before] if before else [])])
        self._adopted = name
        try:
            self._write(found)
        except BaseException:
            self._before, self._adopted = before, last
            posix.rename(claimed, self._path(name + _END))
            raise
        posix.unlink(claimed)

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    def close(self) -> None:
        """The file stays, for the processes that come after this one."""

    def read(self) -> Metrics:
        """What all processes of the directory did.

        :raises OSError: if the directory cannot be read
        """
        found: list[dict[str, Any]] = []
        for _ in range(_LOOKS):
            names = _names(self._directory)
            with contextlib.suppress(FileNotFoundError):
                found = list(_counted({name: _read(self._path(name)) for name in names}))
                if _names(self._directory) == names:
                    break
        if not found:
            raise FileNotFoundError(f"{self._directory} has no counts of any process")
        return metrics.from_dict(metrics.total(found))


def _names(directory: str) -> list[str]:
    return sorted(name for name in posix.listdir(directory) if name.endswith(_END) or _BY in name)


def _read(path: str) -> dict[str, Any]:
    fd = posix.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = b"".join(iter(lambda: posix.read(fd, 1 << 16), b""))
    finally:
        posix.close(fd)
    found: dict[str, Any] = json.loads(text)
    return found


def _counted(records: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The counts of files, without those of whoever has been added to another one already."""
    adopted = {name.partition(_END)[0]: record["adopted"] for name, record in records.items()}
    for name, record in records.items():
        its, claimed, by = name.partition(_BY)
        if not claimed or adopted.get(by) != its:
            yield record["counts"]
