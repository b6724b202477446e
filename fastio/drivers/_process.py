"""A child whose output or input is streamed: on a native thread, or under eventlet without holding up the hub."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Protocol

from fastio import config, counters
from fastio.core import budget
from fastio.core.drain import Drain
from fastio.core.feed import Feed
from fastio.patches import _child

#: Bytes of what a child says on errors that are kept.
_MOST_ERRORS = 16 * 1024


class _Waiter(Protocol):
    """How the running thread or greenlet waits."""

    def opened(self, fd: int) -> None:
        """``fd`` is new, whatever had that number before."""
        ...

    def readable(self, fd: int) -> None: ...

    def writable(self, fd: int) -> None: ...

    def exited(self, popen: subprocess.Popen[bytes]) -> int: ...

    def share(self) -> int:
        """Bytes that may be moved before ``give_way()``."""
        ...

    def give_way(self) -> None: ...


class _Native:
    def opened(self, fd: int) -> None:
        pass

    def readable(self, fd: int) -> None:
        self._wait(fd, select.POLLIN)

    def writable(self, fd: int) -> None:
        self._wait(fd, select.POLLOUT)

    def _wait(self, fd: int, event: int) -> None:
        poll = select.poll()
        poll.register(fd, event)
        poll.poll()

    def exited(self, popen: subprocess.Popen[bytes]) -> int:
        return popen.wait()

    def share(self) -> int:
        return sys.maxsize

    def give_way(self) -> None:
        """Threads give way by themselves."""


class _Green:
    def opened(self, fd: int) -> None:
        from eventlet import hubs

        hubs.notify_opened(fd)

    def readable(self, fd: int) -> None:
        from eventlet import hubs

        hubs.trampoline(fd, read=True)

    def writable(self, fd: int) -> None:
        from eventlet import hubs

        hubs.trampoline(fd, write=True)

    def exited(self, popen: subprocess.Popen[bytes]) -> int:
        from fastio.patches import _hub

        _child.until_exit(popen.pid, lambda pidfd: _hub.wait_readable(pidfd, None))
        return popen.wait()

    def share(self) -> int:
        return budget.shared.share(config.effective().yield_bytes)

    def give_way(self) -> None:
        from eventlet import sleep

        counters.yields += 1
        sleep(0)


def _waiter() -> _Waiter:
    patcher: Any = sys.modules.get("eventlet.patcher")
    return _Green() if patcher is not None and patcher.is_monkey_patched("select") else _Native()


class Child:
    """A child with one pipe: from its standard output, or with ``feeds`` to its standard input.

    Its other streams are ``/dev/null``, but for the errors: those go to a file in memory, which never fills up as a
    pipe does that nobody reads. Leaving the context ends the child if it has not ended by itself.

    :raises OSError: if it can not be started
    """

    def __init__(self, arguments: list[str], *, feeds: bool = False) -> None:
        self._settings = config.effective()
        self._waiter = _waiter()
        self._left = self._waiter.share()
        self._errors = os.memfd_create("errors")
        self._fd = -1
        reader = writer = -1
        try:
            reader, writer = os.pipe()
            self._popen = subprocess.Popen(
                arguments,
                stdin=reader if feeds else subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if feeds else writer,
                stderr=self._errors,
            )
            self._fd = writer if feeds else reader
            # The two ends of a pipe are open file descriptions of their own: the child's stays blocking.
            os.set_blocking(self._fd, False)
            self._waiter.opened(self._fd)
        finally:
            for fd in {reader, writer} - {self._fd, -1}:
                os.close(fd)
            if self._fd < 0:
                os.close(self._errors)

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the child if it has not ended by itself, and close all that belongs to it."""
        self._close_pipe()
        if self._popen.poll() is None:
            self._popen.kill()
            # This may run while a generator is thrown away, where greenlets must not switch; and it takes no time.
            os.waitid(os.P_PID, self._popen.pid, os.WEXITED | os.WNOWAIT)
            self._popen.poll()
        os.close(self._errors)

    def chunks(self, size: int) -> Iterator[bytes]:
        """The output in pieces of ``size`` bytes, of which only the last is shorter; none is empty."""
        drain = Drain(self._fd, size, self._settings.pipe_size)
        while not drain.eof:
            chunk = self._collect(drain, size)
            if chunk:
                yield chunk

    def _collect(self, drain: Drain, size: int) -> bytes:
        budget.shared.enter(self)
        try:
            while size > 0 and not drain.eof:
                self._pace()
                try:
                    count = drain.read(min(size, self._left))
                except BlockingIOError:
                    counters.waits += 1
                    self._waiter.readable(self._fd)
                    self._left = self._waiter.share()
                else:
                    size -= count
                    self._left -= count
            return drain.take()
        finally:
            # Whoever gets the chunk may take any time with it.
            budget.shared.leave(self)

    def write(self, data: bytes) -> None:
        """Write all of ``data``.

        :raises BrokenPipeError: the child does not read any more
        """
        feed = Feed(self._fd, memoryview(data), 0, self._settings.chunk_size, self._settings.pipe_size)
        budget.shared.enter(self)
        try:
            while not feed.done:
                self._pace()
                try:
                    self._left -= feed.write(self._left)
                except BlockingIOError:
                    counters.waits += 1
                    self._waiter.writable(self._fd)
                    self._left = self._waiter.share()
        finally:
            budget.shared.leave(self)
            feed.close()

    def _pace(self) -> None:
        if self._left <= 0:
            self._waiter.give_way()
            self._left = self._waiter.share()

    def finish(self) -> tuple[int, str]:
        """End the input, or close the output, and wait for the child; its exit status, and what it said on errors."""
        self._close_pipe()
        status = self._waiter.exited(self._popen)
        said = os.pread(self._errors, _MOST_ERRORS, 0)
        return status, said.decode(errors="replace")

    def _close_pipe(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
