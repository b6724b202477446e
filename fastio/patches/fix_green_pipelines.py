"""``fix_green_pipelines``: under eventlet a pipeline built from ``stdin=p1.stdout`` loses no data.

GreenPipe makes a pipe non-blocking, and that is a property of the open file description, which a
child that is given the pipe shares: it gets EAGAIN, which few programs expect, and stops. Here the
child is given an open file description of its own, a blocking one, by opening the pipe again
through /proc.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import Any

from fastio.patches import _targets
from fastio.registry import Patch


def _reopened(file: Any, flags: int) -> Any:
    """A blocking file for the pipe of a GreenPipe; anything else as it is."""
    from eventlet.greenio.py3 import GreenFileIO

    raw = getattr(file, "buffer", file)
    raw = getattr(raw, "raw", raw)
    if not isinstance(raw, GreenFileIO):
        return file
    fd = file.fileno()
    if os.get_blocking(fd) or not stat.S_ISFIFO(os.fstat(fd).st_mode):
        return file
    try:
        return open(os.open(f"/proc/self/fd/{fd}", flags | os.O_CLOEXEC), "rb" if flags == os.O_RDONLY else "wb", 0)
    except OSError:
        return file


def make_get_handles(below: Callable[..., Any], slot: Any) -> Callable[..., Any]:
    """The wrapper of ``Popen._get_handles``."""

    def _get_handles(self: Any, stdin: Any, stdout: Any, stderr: Any) -> Any:
        files = (_reopened(stdin, os.O_RDONLY), _reopened(stdout, os.O_WRONLY), _reopened(stderr, os.O_WRONLY))
        # They close themselves when Popen lets go of them, also if it fails before the child is started.
        given = (stdin, stdout, stderr)
        self._fastio_handles = [new for new, old in zip(files, given, strict=True) if new is not old]
        return below(self, *files)

    return _get_handles


def make_close_pipe_fds(below: Callable[..., Any], slot: Any) -> Callable[..., Any]:
    """The wrapper of ``Popen._close_pipe_fds``, which closes the child's ends in the parent."""

    def _close_pipe_fds(self: Any, *args: Any) -> Any:
        for file in self.__dict__.pop("_fastio_handles", ()):
            file.close()
        return below(self, *args)

    return _close_pipe_fds


PATCH = Patch(
    name="fix_green_pipelines",
    summary="eventlet: a child that is given another child's pipe gets it in blocking mode",
    targets=(
        # Each relies on the other being there.
        _targets.green_popen(make_get_handles, "_get_handles", "_close_pipe_fds"),
        _targets.green_popen(make_close_pipe_fds, "_close_pipe_fds", "_get_handles"),
    ),
)
