"""``fix_green_pipelines``: under eventlet, a pipeline built with ``stdin=p1.stdout`` loses no data.

GreenPipe makes a pipe non-blocking. This is a property of the open file description, which a child that is given the
pipe shares. The child then gets EAGAIN, which few programs expect, and stops. With this patch, the child gets a
separate open file description, in blocking mode, because the pipe is opened again through /proc. The new description
has the direction of the first. The parent closes it as soon as the child has started.

``stdin=p1.stdout.fileno()`` means the same pipe. A number is recognised only while the GreenPipe that made the pipe
non-blocking is open, and while the number still refers to the same pipe. Otherwise the number is passed on.
This is so for a pipe that was non-blocking before, and for a GreenPipe that is older than the patch.
"""

import fcntl
import io
import os
import stat
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from fastio import counters
from fastio.patches.subprocess import _popen
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target

_counts = counters.of(__name__)

#: GreenPipes that made their pipe non-blocking, by the number of the descriptor
_made: WeakValueDictionary[int, Any] = WeakValueDictionary()


def _pipe(fd: int) -> tuple[int, int, int] | None:
    """Return the identity of one end of a pipe; None if it is no pipe."""
    found = os.fstat(fd)
    if not stat.S_ISFIFO(found.st_mode):
        return None
    return found.st_dev, found.st_ino, fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE


def make_init(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``GreenFileIO.__init__``."""

    def __init__(self: Any, name: Any, *rest: Any, **kwargs: Any) -> None:
        try:
            pipe = _pipe(name) if isinstance(name, int) and os.get_blocking(name) else None
        except OSError:
            pipe = None
        wrapped(self, name, *rest, **kwargs)
        if pipe is not None:
            self._fastio_pipe = pipe
            _made[name] = self

    return __init__


def _descriptor(given: Any) -> int | None:
    """The descriptor of the GreenPipe that ``given``, a file or a number, is; None if it is something else."""
    from eventlet.greenio.py3 import GreenFileIO

    if not isinstance(given, int):
        raw = getattr(given, "buffer", given)
        return given.fileno() if isinstance(getattr(raw, "raw", raw), GreenFileIO) else None
    file = _made.get(given)
    if file is None or file._closed or file._fileno != given or file._fastio_pipe != _pipe(given):
        return None
    return given


def _other_end_is_gone(fd: int) -> bool:
    from eventlet import patcher

    poll = patcher.original("select").poll()
    poll.register(fd, 0)
    return bool(poll.poll(0))


def _reopened(given: Any) -> Any:
    """A blocking file for the pipe of a GreenPipe; anything else unchanged."""
    try:
        fd = _descriptor(given)
        if fd is None or os.get_blocking(fd) or _pipe(fd) is None or _other_end_is_gone(fd):
            # Without an other end no call waits, and poll() would not tell the end of a named pipe that is opened now.
            return given
        access = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE
        # Without O_NONBLOCK a named pipe waits here for its other end.
        new = os.open(f"/proc/self/fd/{fd}", access | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return given
    os.set_blocking(new, True)
    return io.FileIO(new, {os.O_RDONLY: "r", os.O_WRONLY: "w", os.O_RDWR: "r+"}[access])


def make_get_handles(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Popen._get_handles``."""

    def _get_handles(self: Any, *given: Any) -> Any:
        opened = self.__dict__.get("_fastio_opened")
        if opened is None:
            return wrapped(self, *given)
        files = []
        for file in given:
            files.append(_reopened(file))
            if files[-1] is not file:
                _counts.took()
                opened.append(files[-1])
        return wrapped(self, *files)

    return _get_handles


def make_popen(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of the green ``Popen.__init__``, which ends with the child started, or with an exception."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        opened = self._fastio_opened = []
        try:
            wrapped(self, *args, **kwargs)
        finally:
            # While one of them is open, others do not see the end of the pipe.
            del self._fastio_opened
            for file in opened:
                file.close()

    return __init__


PATCH = Patch(
    __name__,
    summary="eventlet: a child that is given another child's pipe gets it in blocking mode",
    changes="a child that is given another child's pipe gets it in blocking mode",
    targets=(
        Target("eventlet.green.subprocess:Popen.__init__", make_popen, Uses("self, *_", "subprocess_orig __init__")),
        _popen.green_target(
            make_get_handles,
            "_get_handles",
            Uses("self, stdin, stdout, stderr", "fileno"),
        ),
        Target(
            "eventlet.greenio.py3:GreenFileIO.__init__",
            make_init,
            Uses("self, name, *_", "_fileno _closed set_nonblocking"),
        ),
    ),
)
