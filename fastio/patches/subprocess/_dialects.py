"""How ``Popen._communicate`` differs between releases of CPython, and its attributes meanwhile."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from fastio.io.drain import Drain
from fastio.io.feed import Feed
from fastio.patching import registry

#: The calls in progress, by the number of their Popen.
_running: dict[int, list[Communication]] = {}


class Communication:
    """One ``_communicate()`` call: the peer of an exchange that keeps the Popen's own attributes true."""

    def __init__(self, dialect: Dialect, popen: Any, endtime: float | None, orig_timeout: float | None) -> None:
        self.dialect = dialect
        self.popen = popen
        self.endtime = endtime
        self.orig_timeout = orig_timeout
        self.files: dict[int, Any] = {}
        self.outputs: list[Drain] = []
        #: data that was read, by stream; a call that another one overtakes returns this
        #: Without outputs it is not needed, and is missing where the first call failed at the flush.
        self.found: dict[Any, list[bytes]] = getattr(popen, "_fileobj2output", {})
        self.feed: Feed | None = None
        #: another call for the same Popen has begun, in a signal handler, thread or greenlet: what is read is passed on
        #: at once, so that both see it in the order of the reads
        self.shared = False

    def begin(self) -> None:
        """Note this call, and share what the others for the same Popen have read by now."""
        share(self.popen)
        others = _running.setdefault(id(self.popen), [])
        self.shared = bool(others)
        others.append(self)

    def chunks(self, drain: Drain) -> list[bytes]:
        """Return the lists for data read now: a second call replaces those of the first by other ones."""
        chunks: list[bytes] = self.popen._fileobj2output[self.files[drain.fd]]
        return chunks

    def moved(self) -> None:
        if self.shared:
            self.flush()

    def remaining(self) -> float | None:
        if self.endtime is None:
            return None
        left = self.dialect.remaining(self.popen, self.endtime)
        if left < 0:
            self.loop_ended()
            self.flush()
            popen = self.popen
            popen._check_timeout(
                self.endtime,
                self.orig_timeout,
                self.found[popen.stdout] if popen.stdout else None,
                self.found[popen.stderr] if popen.stderr else None,
                skip_check_and_raise=True,
            )
        return left

    def is_open(self, fd: int) -> bool:
        return not self.files[fd].closed

    def fed(self, offset: int) -> None:
        self.popen._input_offset = offset

    def ended(self, fd: int) -> None:
        for drain in self.outputs:
            if drain.fd == fd:
                # Upstream keeps the empty read at the end as well: b"" and None differ in TimeoutExpired.
                self.chunks(drain).extend([drain.take(), b""])
        self.files[fd].close()

    def loop_ended(self) -> None:
        """Upstream's loop ends here: everything is moved, or the time is over."""

    def close(self) -> None:
        """The exchange has ended, perhaps with an exception."""
        others = _running.get(id(self.popen), [])
        if self in others:
            others.remove(self)
        if not others:
            _running.pop(id(self.popen), None)
        if self.feed is not None:
            self.fed(self.feed.offset)
            self.feed.close()
        self.flush()

    def flush(self) -> None:
        """Put what was read where ``_check_timeout`` and other code look for it."""
        for drain in self.outputs:
            data = drain.take()
            if data:
                self.chunks(drain).append(data)


def share(popen: Any) -> None:
    """Another call begins: those in progress put what they have read where it looks, now and after each read."""
    for each in _running.get(id(popen), ()):
        each.shared = True
        each.flush()


class Dialect:
    """CPython 3.10 and later.

    :param namespace: the names that upstream's function sees
    """

    #: the first releases of this dialect, one of each line of releases that has it
    since: Sequence[str] = ("3.10",)
    #: goes on where stdin was closed by the caller, and sends the rest of the input after a time-out
    resumes_input = False
    #: TimeoutExpired from waiting for the child at the end names the caller's timeout, not what was left of it
    names_whole_timeout = False
    communication = Communication

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace

    def remaining(self, popen: Any, endtime: float | None) -> Any:
        """Seconds until ``endtime``, in upstream's way; None without one."""
        return popen._remaining_time(endtime)


class NamesWholeTimeout(Dialect):
    """CPython 3.13.5 and later."""

    since: Sequence[str] = ("3.13.5",)
    names_whole_timeout = True


class ResumesInput(NamesWholeTimeout):
    """CPython 3.13.10, CPython 3.14.1 and later."""

    since: Sequence[str] = ("3.13.10", "3.14.1")
    resumes_input = True


class _WithLoopOfModule(Communication):
    """The loop is a function of the module, which knows nothing of the Popen."""

    def chunks(self, drain: Drain) -> list[bytes]:
        return self.found[self.files[drain.fd]]

    def fed(self, offset: int) -> None:
        # An exception leaves it in the state before the call.
        pass

    def ended(self, fd: int) -> None:
        self.flush()
        is_input = self.feed is not None and fd == self.feed.fd
        with contextlib.suppress(BrokenPipeError if is_input else OSError):
            self.files[fd].close()

    def loop_ended(self) -> None:
        if self.feed is not None:
            self.popen._input_offset = self.feed.offset


class LoopOfModule(ResumesInput):
    """CPython 3.15 and later."""

    since: Sequence[str] = ("3.15",)
    communication = _WithLoopOfModule

    def remaining(self, popen: Any, endtime: float | None) -> Any:
        return self._namespace["_deadline_remaining"](endtime)


def dialect_of(releases: str) -> type[Dialect]:
    """The dialect of code that was recognised as that of ``releases``, such as ``CPython 3.13.5, CPython 3.13.7``."""
    newest_first = (LoopOfModule, ResumesInput, NamesWholeTimeout, Dialect)
    return next(dialect for dialect in newest_first if registry.reached(releases, dialect.since))
