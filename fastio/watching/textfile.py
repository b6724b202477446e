"""A file for the textfile collector of Prometheus's node exporter, one of each process."""

import contextlib
import os
import posix
import re
import time

from fastio.io.replace import NEW, replace
from fastio.watching.metrics import Metrics
from fastio.watching.processes import identity, is_gone

_NAME = re.compile(rf"fastio-(\d+-\d+-\d+)\.prom(?:{re.escape(NEW)})?")
#: Seconds after which the file of another container's process counts as left behind: more than any interval.
_STALE = 2 * 3600


class Textfile:
    """What the process tells the node exporter."""

    def __init__(self, directory: str) -> None:
        os.makedirs(directory, mode=0o755, exist_ok=True)
        self._directory = directory
        self._path = os.path.join(directory, f"fastio-{identity()}.prom")

    def publish(self, found: Metrics, last: bool = False) -> None:
        """Write the file; the ``last`` time, remove it: the counts of a process that has ended do not change."""
        if last:
            with contextlib.suppress(FileNotFoundError):
                posix.unlink(self._path)
            return
        replace(self._path, found.to_prometheus().encode(), 0o644)
        for name in posix.listdir(self._directory):
            match = _NAME.fullmatch(name)
            if match is not None and self._is_stale(match[1], name):
                # Another process may be quicker, or it is another user's.
                with contextlib.suppress(OSError):
                    posix.unlink(os.path.join(self._directory, name))

    def _is_stale(self, owner: str, name: str) -> bool:
        if is_gone(owner):
            return True
        try:
            return time.time() - posix.stat(os.path.join(self._directory, name)).st_mtime > _STALE
        except OSError:
            return False

    def close(self) -> None:
        """Nothing is open."""
