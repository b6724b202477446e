"""A child whose output or input is streamed: on a native thread, or under eventlet without holding up the hub."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from fastio import config, counters
from fastio.concurrency import budget, waiting
from fastio.concurrency.pace import Pace
from fastio.io import syscalls
from fastio.io.drain import Drain
from fastio.io.feed import Feed

#: Bytes of what a child says on errors that are kept.
_MOST_ERRORS = 16 * 1024

#: Seconds that a child may take to end once it was killed. One that the kernel holds in a system call takes longer,
#: and is left to the next :class:`Child`.
_DEATH = 1.0

#: Children that were killed and had not ended yet.
_dying: list[subprocess.Popen[bytes]] = []


def _new_file() -> int:
    """The descriptor of an empty file without a name: in memory, or where that is refused in the temporary directory.

    :raises OSError: neither can be had
    """
    try:
        return os.memfd_create("errors")
    except OSError as error:
        if not syscalls.refused(error):
            raise
    with tempfile.TemporaryFile(buffering=0) as file:
        return os.dup(file.fileno())


def _reap() -> None:
    """Take the status of those of ``_dying`` that have ended. It never waits."""
    for popen in _dying[:]:
        if popen.poll() is not None:
            # Another thread may have done so meanwhile.
            with contextlib.suppress(ValueError):
                _dying.remove(popen)


class Child:
    """A child with one pipe: from its standard output, or with ``feeds`` to its standard input.

    Its other streams are ``/dev/null``, but for the errors: those go to a file, in memory where that can be had,
    which never fills up as an unread pipe does. Leaving the context ends the child if it has not ended by
    itself.

    :param limit: seconds after which :meth:`chunks` and :meth:`finish` raise TimeoutError rather than wait on
    :raises OSError: if it cannot be started
    """

    def __init__(self, arguments: list[str], *, feeds: bool = False, limit: float | None = None) -> None:
        _reap()
        self._settings = config.effective()
        self._waiter = waiting.waiter()
        # Threads yield by themselves.
        self._pace = Pace(budget.FLOOR) if self._waiter.switches else Pace(fixed=sys.maxsize)
        self._limit = limit
        self._end = None if limit is None else time.monotonic() + limit
        self._errors = _new_file()
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
            # The two ends of a pipe are separate open file descriptions: the child's stays blocking.
            os.set_blocking(self._fd, False)
            self._waiter.opened(self._fd)
        finally:
            for fd in {reader, writer} - {self._fd, -1}:
                os.close(fd)
            if self._fd < 0:
                os.close(self._errors)

    def __enter__(self) -> Child:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # A generator that is thrown away ends on whatever greenlet runs just then, also on the hub's.
        self.stop(wait=kind is not GeneratorExit)

    def stop(self, *, grace: float = 0.0, wait: bool = True) -> None:
        """End the child if it has not ended by itself, and close all that belongs to it.

        :param grace: seconds that it has to end by itself, now that its input has ended, before it is killed
        :param wait: False where greenlets must not switch: then nothing waits under eventlet for the child to end
        """
        self._close_pipe()
        try:
            if self._popen.poll() is None and not (grace and self._waiter.exited(self._popen, grace)):
                self._popen.kill()
                if wait or not self._waiter.switches:
                    self._waiter.exited(self._popen, _DEATH)
        finally:
            # Also if the wait was interrupted.
            if self._popen.poll() is None:
                self._popen.kill()
                _dying.append(self._popen)
            os.close(self._errors)

    def chunks(self, size: int) -> Iterator[bytes]:
        """The output in pieces of ``size`` bytes, of which only the last is shorter; none is empty."""
        drain = Drain(self._fd, size, self._settings.pipe_size)
        while not drain.done:
            chunk = self._collect(drain, size)
            if chunk:
                yield chunk

    def _collect(self, drain: Drain, size: int) -> bytes:
        # Not for longer: whoever gets the chunk may take any time with it.
        with self._pace:
            while size > 0 and not drain.done:
                size -= self._move(drain, size)
            return drain.take()

    def write(self, data: bytes) -> None:
        """Write all of ``data``.

        :raises BrokenPipeError: the child does not read any more
        """
        feed = Feed(self._fd, memoryview(data), 0, self._settings.chunk_size, self._settings.pipe_size)
        try:
            with self._pace:
                while not feed.done:
                    self._move(feed, len(data))
        finally:
            feed.close()

    def _move(self, stream: Drain | Feed, most: int) -> int:
        """Move once, else wait, else let others run; returns how many bytes were moved."""
        self._pace.yield_when_due()
        try:
            count = stream.move(min(most, self._pace.left))
        except BlockingIOError:
            counters.io.waits += 1
            if isinstance(stream, Feed):
                self._waiter.writable(self._fd)
            elif not self._waiter.readable(self._fd, self._remaining()):
                raise self._expired() from None
            self._pace.renew()
            return 0
        self._pace.moved(count)
        return count

    def finish(self) -> tuple[int, str]:
        """End the input, or close the output, and wait for the child; its exit status, and what it said on errors."""
        self._close_pipe()
        if not self._waiter.exited(self._popen, self._remaining()):
            raise self._expired()
        said = os.pread(self._errors, _MOST_ERRORS, 0)
        return self._popen.returncode, said.decode(errors="replace")

    def _remaining(self) -> float | None:
        return None if self._end is None else self._end - time.monotonic()

    def _expired(self) -> TimeoutError:
        return TimeoutError(f"it has not ended within {self._limit:g} seconds")

    def _close_pipe(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
