"""``green_pipe``: eventlet's GreenPipe (``eventlet.greenio.py3.GreenFileIO``).

Upstream's ``readall`` reads blocks of 8 KiB into a list. Its ``readinto`` reads into a temporary object and copies it.
A reader or writer whose peer keeps up never lets other greenlets run. With this patch, ``readall`` reads large chunks
from a larger pipe into one growing result, and ``readinto`` reads in place. Each file yields after its share of
``yield_bytes``. In the hub's own greenlet, which cannot yield, nothing does. On a regular file or a block device, which
greenlets share by its position, the patch never yields and splits no write; neither does upstream. Under
``monkey_patch()``, ``os.read()`` is green and takes nothing from a file for which another greenlet waits: upstream's
code runs then, and refuses.

The methods are plain replacements of upstream's, with no function in between: a ``read(1)`` costs little more than
its call.
"""

import os
import stat
from collections.abc import Callable
from posix import read as _read  # the functions of os may have been replaced by green ones
from posix import write as _write
from typing import Any

from fastio import config, counters
from fastio.concurrency import budget
from fastio.concurrency.pace import Pace
from fastio.config import Settings
from fastio.counters import Reason
from fastio.io import pipes, syscalls
from fastio.io.drain import LEAST, Drain
from fastio.patches.subprocess import _popen
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target

_counts = counters.of(__name__)

#: A read or write of this size says that the pipe carries much.
_MUCH = pipes.DEFAULT_CAPACITY // 2


def _begin(file: Any) -> Pace:
    """The pace of a ``file`` that had none yet."""
    pace = file._fastio_pace = Pace(budget.FLOOR)
    pace.renew()
    return pace


def _is_stream(fd: int) -> bool:
    """Whether the file is a pipe, socket or character device, and none that greenlets share by its position."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode)


def _yield(file: Any, pace: Pace) -> None:
    """Let others run: ``file`` has moved its share without waiting. A regular file never yields, as with upstream."""
    if _is_stream(file._fileno) and pace.yield_to_hub() and file._closed:
        from eventlet.hubs import IOClosed

        # The number of the descriptor may belong to another file by now.
        raise IOClosed()
    pace.renew()


def _wait_to_read(file: Any, pace: Pace) -> None:
    counters.io.waits += 1
    file._trampoline(file, read=True)
    pace.renew()


def _grow(file: Any) -> None:
    """Ask for a larger pipe."""
    growth = file.__dict__.get("_fastio_growth")
    if growth is None or growth.fd != file._fileno:
        growth = file._fastio_growth = pipes.Growth(file._fileno, _pipe_size(file, config.effective()))
    growth.ask()


def _pipe_size(file: Any, settings: Settings) -> int:
    """The capacity to ask for."""
    return 0 if "_fastio_size_is_chosen" in file.__dict__ else settings.pipe_size


def make_init(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of the green ``Popen.__init__``, which alone knows that the caller chose the size of the pipes."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        wrapped(self, *args, **kwargs)
        if _popen.has_pipes_of_chosen_size(self):
            for stream in (self.stdin, self.stdout, self.stderr):
                if stream is not None:
                    buffered = getattr(stream, "buffer", stream)
                    getattr(buffered, "raw", buffered)._fastio_size_is_chosen = True

    return __init__


def make_read(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The replacement of ``GreenFileIO.read``."""
    from fastio.concurrency.hub_wait import is_waited_for

    def read(self: Any, size: int = -1) -> bytes:
        if size == -1 or not hook.active or os.read is not _read and is_waited_for(self._fileno):
            return wrapped(self, size)
        try:
            pace = self._fastio_pace
        except AttributeError:
            pace = _begin(self)
        if pace.left <= 0:
            _yield(self, pace)
        while True:
            try:
                data = _read(self._fileno, size)
            except BlockingIOError:
                _wait_to_read(self, pace)
            except OSError as e:
                raise OSError(*e.args)  # noqa: B904 - like upstream
            else:
                count = len(data)
                _counts.reads += 1
                _counts.bytes_in += count
                pace.left -= count
                if count >= _MUCH:
                    _grow(self)
                return data

    return read


def make_readall(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The replacement of ``GreenFileIO.readall``."""
    from fastio.concurrency.hub_wait import is_waited_for

    def readall(self: Any) -> bytes:
        if not hook.active or not _is_stream(self._fileno) or os.read is not _read and is_waited_for(self._fileno):
            return wrapped(self)
        settings = config.effective()
        drain = Drain(self._fileno, max(settings.chunk_size, LEAST), _pipe_size(self, settings))
        # Not that of the file, of which single reads may have left little.
        with Pace(budget.FLOOR) as pace:
            while True:
                if pace.left <= 0:
                    _yield(self, pace)
                try:
                    pace.left -= drain.move(max(pace.left, LEAST))
                except BlockingIOError:
                    _wait_to_read(self, pace)
                except OSError as e:
                    raise OSError(*e.args)  # noqa: B904 - like upstream
                else:
                    if drain.done:
                        _counts.calls += 1
                        _counts.bytes += drain.total
                        return drain.take()

    return readall


def make_readinto(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The replacement of ``GreenFileIO.readinto``."""
    from eventlet.greenio.py3 import GreenFileIO

    from fastio.concurrency.hub_wait import is_waited_for

    def readinto(self: Any, b: Any) -> int:
        # A subclass may define a read(), which upstream's readinto() calls.
        if not hook.active or os.read is not _read and is_waited_for(self._fileno):
            return wrapped(self, b)
        if type(self) is not GreenFileIO or not _popen.plain_bytes(b):
            _counts.fell_back(Reason.FOREIGN if type(self) is not GreenFileIO else Reason.INPUT)
            return wrapped(self, b)
        try:
            pace = self._fastio_pace
        except AttributeError:
            pace = _begin(self)
        if pace.left <= 0:
            _yield(self, pace)
        while True:
            try:
                count = os.readv(self._fileno, [b])
            except BlockingIOError:
                _wait_to_read(self, pace)
            except OSError as e:
                if syscalls.refused(e):
                    _counts.fell_back(Reason.REFUSED)
                    return wrapped(self, b)
                raise OSError(*e.args)  # noqa: B904 - like upstream
            else:
                _counts.reads += 1
                _counts.bytes_in += count
                pace.left -= count
                if count >= _MUCH:
                    _grow(self)
                return count

    return readinto


def make_write(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The replacement of ``GreenFileIO.write``."""
    from eventlet.hubs import trampoline

    def write(self: Any, data: Any) -> int:
        view = memoryview(data)
        if not hook.active:
            return wrapped(self, data)
        if view.itemsize != 1:
            _counts.fell_back(Reason.INPUT)
            return wrapped(self, data)
        size = len(view)
        chunk = size
        if size >= _MUCH and _is_stream(self._fileno):
            chunk = config.effective().chunk_size
            _grow(self)
        offset = 0
        try:
            pace = self._fastio_pace
        except AttributeError:
            pace = _begin(self)
        while offset < size:
            if pace.left <= 0:
                _yield(self, pace)
            try:
                written = _write(self._fileno, view[offset : offset + chunk])
            except BlockingIOError:
                counters.io.waits += 1
                # Upstream's own for writers: the file does not count as closed after IOClosed, as it does for readers.
                trampoline(self, write=True)
                pace.renew()
            except OSError as e:
                raise OSError(*e.args)  # noqa: B904 - like upstream
            else:
                offset += written
                counters.io.writes += 1
                counters.io.bytes_out += written
                pace.left -= written
        _counts.calls += 1
        _counts.bytes += offset
        return offset

    return write


_RELIES_ON = {
    "_trampoline": Uses("self, fd, read=False, *_", "trampoline fd read"),
    "__init__": Uses("self, *_", "_fileno _closed"),
}

PATCH = Patch(
    __name__,
    summary="GreenPipe: large reads into one result, reads in place, larger pipes, fair to other greenlets",
    changes="a greenlet whose file another one closes during a large read or write gets IOClosed at once",
    targets=(
        Target("eventlet.greenio.py3:GreenFileIO.read", make_read, relies_on=_RELIES_ON, direct=True),
        Target("eventlet.greenio.py3:GreenFileIO.readall", make_readall, relies_on=_RELIES_ON, direct=True),
        Target("eventlet.greenio.py3:GreenFileIO.readinto", make_readinto, relies_on=_RELIES_ON, direct=True),
        Target("eventlet.greenio.py3:GreenFileIO.write", make_write, relies_on=_RELIES_ON, direct=True),
        Target("eventlet.green.subprocess:Popen.__init__", make_init, Uses("self, *_", "setattr wrapped_pipe")),
    ),
)
