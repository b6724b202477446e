"""What this process tells others about itself by its own account, every few seconds or when it is asked.

There is one source, :func:`fastio.watching.metrics.read`, and an output for each setting. A forked child begins anew:
at the fork, or, where the server that forked it did not tell Python, with the first call that a patch takes.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import sys
from collections.abc import Callable
from typing import Any, Protocol

from fastio import config, counters, log
from fastio.concurrency import current, native
from fastio.concurrency.beat import Beat
from fastio.concurrency.try_lock import TryLock
from fastio.config import Settings
from fastio.counters import Cause
from fastio.watching import metrics
from fastio.watching.metrics import Metrics


class Output(Protocol):
    """One of those who are told."""

    def publish(self, found: Metrics, last: bool = False) -> None:
        """Tell it.

        :param last: nothing is told after this, and nothing may wait in a hub
        :raises OSError: if it cannot be told now
        """
        ...

    def close(self) -> None: ...


class Told:
    """An output, and its turn: a thread, a greenlet or a request tells it, and the others need not meanwhile."""

    def __init__(self, output: Output, safely: Callable[[Callable[[], object]], None]) -> None:
        self.output = output
        self._safely = safely
        self._turn = TryLock()
        self._ending = False
        self.ended = False

    def tell(self) -> None:
        """Tell it what is counted now."""
        if self._turn.try_acquire():
            try:
                self._safely(lambda: self.output.publish(metrics.read()))
            finally:
                self._turn.release()
            if self._ending:
                self.end()

    def end(self) -> None:
        """Tell it the last counts; whoever is telling it now does so after that."""
        self._ending = True
        if self._turn.try_acquire():
            self._safely(lambda: self.output.publish(metrics.read(), last=True))
            self.output.close()
            self.ended = True


def wanted(settings: Settings | None) -> tuple[Any, ...]:
    """Which settings ask for what, to compare; nothing at all if none does."""
    if settings is None or not settings.enabled:
        return ()
    found = (settings.run_dir, settings.metrics_textfile, settings.metrics_statsd)
    return (*found, settings.metrics_interval) if any(found) else ()


class Publisher:
    """The outputs of one process, and what has them told."""

    def __init__(self, settings: Settings) -> None:
        self.pid = os.getpid()
        self.wanted = wanted(settings)
        self.shared: Told | None = None
        self._answers: Any = None
        self._told: list[Told] = []
        #: settings whose output has failed and said so
        self._failed: set[str] = set()
        if (run_dir := settings.run_dir) is not None:
            self._safely("run_dir", lambda: self._open_directory(run_dir))
        if (directory := settings.metrics_textfile) is not None:
            from fastio.watching.textfile import Textfile

            self._open("metrics_textfile", Textfile, directory)
        if (address := settings.metrics_statsd) is not None:
            from fastio.watching.statsd import Statsd

            self._open("metrics_statsd", Statsd, address)
        fd, ready = -1, None
        if self._answers is not None:
            fd, ready = self._answers.fileno(), lambda: self._safely("run_dir", self._answers.answer)
        self._beat = Beat(settings.metrics_interval, self.publish, _listen, fd, ready)

    def _open_directory(self, directory: str) -> None:
        from fastio.watching.answers import Answers
        from fastio.watching.shared import Shared

        os.makedirs(directory, mode=0o700, exist_ok=True)
        if not config.is_private(directory):
            raise PermissionError(f"{directory} is another user's, or others may enter it")
        self.shared = self._open("run_dir", Shared, directory)
        self._answers = Answers(directory)

    def _open(self, setting: str, kind: Callable[[str], Output], place: str) -> Told | None:
        found: list[Told] = []
        self._safely(setting, lambda: found.append(Told(kind(place), functools.partial(self._safely, setting))))
        self._told += found
        return found[0] if found else None

    def _safely(self, setting: str, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception as error:
            # The service goes on, and so do the other outputs. One that fails again and again says so once.
            if setting not in self._failed:
                self._failed.add(setting)
                log.log(log.WARNING, "fastio: %s: %s: %s", setting, type(error).__name__, error)
        else:
            self._failed.discard(setting)

    def begin(self) -> bool:
        """Whether it is at work; False in a process that has no hub yet, and will have one."""
        return self._beat.begin()

    def publish(self) -> None:
        """Tell all outputs."""
        for told in self._told:
            told.tell()

    def end(self) -> None:
        self._beat.end()
        for told in self._told:
            told.end()
        self._close()
        sleep = native.module("time").sleep
        for _ in range(_PATIENCE):
            if all(told.ended for told in self._told) or not current.may_block():
                break
            # Its thread is telling one of them.
            sleep(0.01)

    def abandon(self) -> None:
        """In a forked child: the outputs are the parent's."""
        self._beat.abandon()
        if not current.is_green():
            self._close()
            for told in self._told:
                told.output.close()

    def _close(self) -> None:
        if self._answers is not None:
            self._answers.close()


_active: Publisher | None = None
_hooked = False
#: Whoever has taken it begins anew.
_turn = TryLock()
#: Seconds after a fork
_PAUSE = 0.2
#: Hundredths of a second that the end of a process may take
_PATIENCE = 200


def follow(settings: Settings | None) -> None:
    """Have what ``settings`` ask for be told, and nothing else."""
    global _active, _hooked
    if settings is not None and settings.metrics_opentelemetry or "fastio.watching.telemetry" in sys.modules:
        from fastio.watching import telemetry

        telemetry.switch(settings is not None and settings.enabled and settings.metrics_opentelemetry)
    _see_to_the_process()
    if wanted(settings) == (() if _active is None else _active.wanted):
        return
    before, _active = _active, None
    if before is not None:
        before.end()
    _active = _new(settings)
    if _active is not None and not _hooked:
        _hooked = True
        os.register_at_fork(after_in_child=_forked)
        atexit.register(stop)


def stop() -> None:
    """Tell the last counts, and nothing more."""
    global _active
    publisher, _active = _active, None
    counters.listen(_wake, False)
    if publisher is not None and publisher.pid == os.getpid():
        publisher.end()


def all_processes() -> Metrics | None:
    """What all processes did that have the same ``run_dir``, this one until now; None without that setting."""
    _see_to_the_process()
    publisher = _active
    if publisher is None or publisher.shared is None:
        return None
    publisher.shared.tell()
    shared: Any = publisher.shared.output
    found: Metrics = shared.read()
    return found


def _new(settings: Settings | None) -> Publisher | None:
    """What tells those who are to be told, at work; None if there is nobody, or no descriptor is left."""
    if settings is None or not wanted(settings):
        return None
    try:
        publisher = Publisher(settings)
    except OSError as error:
        log.log(log.WARNING, "fastio: nothing is told: %s", error)
        return None
    publisher.begin()
    # In a process with a hub, the first call says where that is; else it may come in a child that knows of no fork.
    _listen()
    return publisher


def _listen() -> None:
    counters.listen(_wake)


def _wake(patch: str, reason: Cause | None) -> None:
    """With the first calls."""
    if _see_to_the_process():
        # This one was counted as the parent's.
        if reason is None:
            counters.of(patch).calls += 1
        else:
            counters.of(patch).fallbacks[reason] += 1
    if _active is None or _active.begin() and not _forks_untold():
        counters.listen(_wake, False)


def _forks_untold() -> bool:
    """Whether this is the master of uWSGI, which does not tell Python when it forks: its workers have to find out."""
    worker_id = getattr(sys.modules.get("uwsgi"), "worker_id", None)
    return worker_id is not None and worker_id() == 0


def _forked() -> None:
    """Begin anew in a child, unless it becomes another program, or ends, at once."""
    if _active is not None:
        _listen()
        if current.may_block() and not current.is_green():
            with contextlib.suppress(RuntimeError):
                native.start_new_thread()(_begin_later, (native.module("time").sleep,))


def _begin_later(sleep: Callable[[float], None]) -> None:
    sleep(_PAUSE)
    _see_to_the_process()


def _see_to_the_process() -> bool:
    """Begin anew in a child, if this is one; True if it was not known to be one, and its counts began with that."""
    global _active
    before = _active
    if before is None or before.pid == os.getpid():
        return False
    if not _turn.try_acquire():
        return False
    settings = config.in_force()
    before.abandon()
    # The server that forked need not have told Python.
    unknown = counters.pid != os.getpid()
    if unknown:
        counters.reset()
    _active = _new(settings)
    _turn.release()
    return unknown
