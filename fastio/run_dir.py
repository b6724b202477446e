"""The directory ``run_dir``: each process keeps a file with its status there, and one with its counts for Prometheus.

The files are ``fastio-NAMESPACE-PID-START.json`` and ``.prom``. They are written when the process is patched, with the
first count ten seconds after the last time, and at the end of the process. Each is written under another name, and then
renamed. In a process with a hub, a greenlet has native threads make the calls, and no other waits for it. No descriptor
stays open. Each writer removes files of processes that have ended, a bounded number each time.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import posix  # os's functions, also where eventlet has replaced it
import re
import stat
import struct
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from fastio import config, counters, exporters, log
from fastio.concurrency import current, offload
from fastio.concurrency.try_lock import TryLock
from fastio.counters import Cause, Tally
from fastio.errors import FastioError
from fastio.io import libc
from fastio.patching import patcher
from fastio.report import Report

#: Seconds from one time to the next.
INTERVAL = 10.0
#: Number of files that are removed, and of buffers of names that are read, in one pass.
REMOVALS, LOOKS = 256, 4
#: Seconds after which the file of another container's process counts as left behind.
STALE = 3600
#: Bytes of a file that are read, and files that are summed.
MOST_BYTES, MOST_FILES = 1 << 20, 10_000

_NAME = re.compile(r"fastio-(\d+)-(\d+)-(\d+)(\.json|\.prom)(?:\.new|\.last)?")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

#: Makes a call of :mod:`fastio.io.libc`, and returns its result.
Run = Callable[..., Any]


def _here(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


class Files:
    """The files of this process in ``directory``."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.pid = os.getpid()
        self._turn = TryLock()
        #: when the files may be written again, and when a count is looked at again
        self._due = self._next = 0.0
        #: the status as JSON and for Prometheus, and how many modules there were then
        self._report: tuple[str, dict[str, str], int] = ("", {}, 0)
        #: where in the directory the next look begins
        self._offset = 0
        self._written = False
        self._failed = ""

    def counted(self) -> None:
        """Have the files written, now or once they are due. It never waits in a thread that has a hub."""
        now = time.monotonic()
        if now < self._next:
            return
        hub = current.hub_of_thread()
        if hub is not None:
            when = max(now, self._due)
            # Should the hub end before that, a later count begins again.
            self._next = when + INTERVAL
            # Appends to a list; what allocates much comes later, in the hub.
            hub.schedule_call_global(when - now, self._begin_in_hub, hub)
        elif current.may_block():
            self.write()

    def changed(self) -> None:
        """Have the files written because the patches have changed, and again with the first count."""
        self._report, self._due, self._next = ("", {}, 0), 0.0, 0.0
        if current.hub_of_thread() is not None:
            self.counted()
        else:
            self.write()
            self._next = 0.0

    def _begin_in_hub(self, hub: Any) -> None:
        sys.modules["greenlet"].greenlet(self.write, hub.greenlet).switch()

    def write(self, last: bool = False) -> None:
        """Write the files, unless another thread or greenlet is writing them.

        :param last: the process ends: make all calls in this thread, whoever is writing
        """
        if self.pid != os.getpid() or not (self._turn.try_acquire() or last):
            return
        try:
            now = time.monotonic()
            self._due = now + INTERVAL
            (report, states), found = self._status(last), exporters.read()
            # Under a hub, what is counted from now on is written ten seconds later, whether or not more comes.
            self._next = 0.0 if current.hub_of_thread() is not None else self._due
            metrics = json.dumps(found.to_dict())
            data = f'{{"written": {time.time():.3f}, "report": {report}, "metrics": {metrics}}}\n'
            # No patch is in effect any more, and the file may stay.
            text = found.to_prometheus({} if last else states)
            self._write(_here if last else offload.run, data, text, ".last" if last else ".new")
            self._written, self._failed = True, ""
        except Exception as error:
            # The service goes on. Repeated failures are logged once.
            text = f"{type(error).__name__}: {error}"
            if text != self._failed:
                log.log(log.WARNING, "fastio: run_dir: %s: %s", self.directory, text)
            self._failed = text
        finally:
            self._turn.release()

    def _status(self, last: bool) -> tuple[str, dict[str, str]]:
        """The status as JSON, and for Prometheus. It takes some 20 ms of a hub's time: imports have it made again."""
        text, _, modules = self._report
        if not text or modules != len(sys.modules) and not last and not patcher.busy():
            report = patcher.status()
            self._report = json.dumps(report.to_dict()), exporters.states_of(report), len(sys.modules)
        return self._report[:2]

    def _write(self, run: Run, status: str, metrics: str, ending: str) -> None:
        with self._opened(run) as directory:
            for kind, text, mode in ((".json", status, 0o600), (".prom", metrics, 0o644)):
                _replace(run, directory, _name() + kind, ending, text.encode(), mode)
            self._clean(run, directory)

    @contextlib.contextmanager
    def _opened(self, run: Run) -> Iterator[int]:
        """A descriptor of the directory, which is created if need be, for as long as the files are written.

        :raises OSError: if it cannot be used, or others could exchange the files in it
        """

        def create() -> int:
            if not os.path.lexists(self.directory):
                os.makedirs(self.directory, 0o755, exist_ok=True)
            return posix.open(self.directory, _DIRECTORY)

        fd = _make(run, libc.open_at(libc.AT_FDCWD, self.directory, _DIRECTORY), create)
        try:
            if not config.is_trusted(posix.fstat(fd)):
                raise PermissionError("neither this user's nor root's, or others can write to it and it is not sticky")
            yield fd
        finally:
            _close(run, fd, self.pid)

    def _clean(self, run: Run, directory: int) -> None:
        """Remove files of processes that have ended; the next time, go on from there."""
        removed = 0
        try:
            posix.lseek(directory, self._offset, os.SEEK_SET)
        except OSError:
            posix.lseek(directory, 0, os.SEEK_SET)
        for name, self._offset in _names(run, directory):
            if removed >= REMOVALS:
                return
            if _is_left(directory, name):
                # Another process may be quicker, or it is another user's.
                removed += 1
                _unlink(run, directory, name)

    def remove(self) -> None:
        """Remove the files of this process: it is not patched any more."""
        with contextlib.suppress(OSError), self._opened(_here) as directory:
            for kind in (".json", ".prom"):
                _unlink(_here, directory, _name() + kind)

    def end(self) -> None:
        """Write the last counts, if there are any."""
        tallies = counters.tallies()
        if self._written or any(each.calls or each.reads or any(each.fallbacks.values()) for each in tallies):
            self.write(last=True)


def _make(run: Run, call: tuple[Any, ...] | None, otherwise: Callable[[], int | None]) -> int:
    """The result of a call of the C library; if it fails, that of the same call of Python's, which raises the error."""
    result = -1 if call is None else run(*call)
    return result if result >= 0 else otherwise() or 0


def _replace(run: Run, directory: int, name: str, ending: str, data: bytes, mode: int) -> None:
    """Have the file ``name`` of the directory hold ``data``; if that fails, it is unchanged.

    :raises OSError: if it cannot be written
    """
    pid, new = os.getpid(), name + ending
    _unlink(run, directory, new)
    fd = _make(run, libc.open_at(directory, new, _NEW, mode), lambda: posix.open(new, _NEW, mode, dir_fd=directory))
    try:
        try:
            # Whatever the process's umask is.
            _make(run, libc.change_mode(fd, mode), lambda: posix.fchmod(fd, mode))
            at = 0
            while at < len(data):
                at += _make(run, libc.write(fd, data, at), lambda at=at: posix.write(fd, data[at:]))  # type: ignore[misc]
        finally:
            _close(run, fd, pid)
        renamed = libc.rename_at(directory, new, name)
        _make(run, renamed, lambda: posix.rename(new, name, src_dir_fd=directory, dst_dir_fd=directory))
    except BaseException:
        if pid == os.getpid():
            _unlink(_here, directory, new)
        raise


def _close(run: Run, fd: int, pid: int) -> None:
    # Where a greenlet ends in a forked child, the number may be another file's.
    if pid == os.getpid() and (call := libc.close(fd)) is not None:
        run(*call)


def _unlink(run: Run, directory: int, name: str) -> None:
    if (call := libc.unlink_at(directory, name)) is not None:
        run(*call)


def _names(run: Run, directory: int) -> Iterator[tuple[str, int]]:
    """The next names in a directory, each with the offset behind it, 0 behind the last one."""
    call = libc.entries(directory, 1 << 15)
    if call is None:
        yield from ((name, 0) for name in posix.listdir(directory))
        return
    offset = 0
    for _ in range(LOOKS):
        size = run(*call)
        if size <= 0:
            yield "", 0
            return
        data, at = call[2].raw[:size], 0
        while at < size:
            offset, length = struct.unpack_from("=8xqH", data, at)
            yield os.fsdecode(data[at + 19 : at + length].partition(b"\0")[0]), offset
            at += length


def _is_left(directory: int, name: str) -> bool:
    """Whether the file is one of a process that has ended."""
    match = _NAME.fullmatch(name)
    if match is None:
        return False
    namespace, pid, began = match[1], match[2], match[3]
    if namespace == _namespace("self"):
        return start(pid) != began
    # Nothing is known of the processes of other containers.
    with contextlib.suppress(OSError):
        return time.time() - posix.stat(name, dir_fd=directory, follow_symlinks=False).st_mtime > STALE
    return False


def _name() -> str:
    """The name of this process's files: no other process has it, in whatever container, before or after it."""
    return f"fastio-{_namespace('self')}-{os.getpid()}-{start('self')}"


def _namespace(pid: object) -> str:
    return "".join(filter(str.isdigit, os.readlink(f"/proc/{pid}/ns/pid")))


def start(pid: object) -> str:
    """Return when the process began, in ticks since the machine did; empty if it has ended."""
    try:
        fd = posix.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        fields = posix.read(fd, 4096).rpartition(b")")[2].split()
    except ProcessLookupError:
        return ""
    finally:
        posix.close(fd)
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()


_files: Files | None = None
_hooked = False


def configure(directory: str | None) -> None:
    """Keep files in ``directory`` from now on, and write them; None: keep none."""
    global _files, _hooked
    before = _files
    if before is not None and (before.directory != directory or before.pid != os.getpid()):
        _files = counters.wake = None
        if before.pid == os.getpid():
            before.remove()
    if directory is None:
        return
    if _files is None:
        _files = Files(directory)
        counters.wake = _wake
    if not _hooked:
        _hooked = True
        os.register_at_fork(after_in_child=_forked)
        atexit.register(_end)
    _files.changed()


def _wake(tally: Tally, reason: Cause | None) -> None:
    files = _files
    if files is None:
        return
    if files.pid != os.getpid():
        # uWSGI forks without a word to Python: what was counted before is the parent's.
        files = _forked()
        if counters.pid != os.getpid():
            counters.reset()
            if reason is None:
                tally.calls += 1
            else:
                tally.fallbacks[reason] += 1
    if files is not None:
        files.counted()


def _forked() -> Files | None:
    """Have a child keep separate files, from its first count on."""
    global _files
    if (before := _files) is not None:
        _files = Files(before.directory)
        _files._report = before._report
    return _files


def _end() -> None:
    if _files is not None and _files.pid == os.getpid():
        _files.end()


# Reading


class StatusError(FastioError):
    """The status of a process cannot be read. The message gives the reason."""


def read(pid: int, directory: str | None = None) -> dict[str, Any]:
    """Return what a process has written: ``report``, ``metrics``, and when (``written``).

    :param directory: its ``run_dir``; None: as the environment of this process or of that one has it
    :raises StatusError: if there is no such process, or nothing that it has written
    """
    began = start(pid)
    if not began:
        raise StatusError(f"there is no process {pid}")
    try:
        facts = _facts(f"/proc/{pid}/status")
        # Its own container numbers it differently.
        name = f"fastio-{_namespace(pid)}-{facts['NSpid'][-1]}-{began}.json"
        environ = dict(each.partition(b"=")[::2] for each in _content(f"/proc/{pid}/environ").split(b"\0"))
    except PermissionError:
        raise StatusError(f"only the user of process {pid}, and root, can read its status") from None
    except (OSError, LookupError):
        raise StatusError(f"there is no process {pid}") from None
    given = [directory or os.environ.get("FASTIO_RUN_DIR"), os.fsdecode(environ.get(b"FASTIO_RUN_DIR", b""))]
    places = list(dict.fromkeys(os.path.abspath(each) for each in given if each))
    if not places:
        raise StatusError(f"process {pid}: its run_dir is not known; give it with --run-dir or FASTIO_RUN_DIR")
    owners = {0, *map(int, facts["Uid"][:2])}
    for place in places:
        for path in (f"{place}/{name}", f"/proc/{pid}/root{place}/{name}"):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                return _read(path, owners)
    raise StatusError(
        f"process {pid} has no file in {' or '.join(places)}: it was started without this run_dir, is a forked worker "
        f"that has not served anything yet, or is a master: ask one of its workers (pgrep -P {pid})"
    )


def read_all(directory: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Return what the live processes of a directory have written, and a line for each file that is skipped.

    :raises StatusError: if the directory cannot be read
    """
    found, skipped = [], []
    try:
        owners = {0, os.geteuid(), os.stat(directory).st_uid}
        names = sorted(os.listdir(directory))
    except OSError as error:
        raise StatusError(f"run_dir: {directory!r}: {error.strerror}") from None
    for name in names[:MOST_FILES]:
        match = _NAME.fullmatch(name)
        if match is None:
            skipped.append(f"{name!r} is not fastio's")
        elif name.endswith(".json") and (match[1] != _namespace("self") or start(match[2]) == match[3]):
            try:
                found.append(_read(os.path.join(directory, name), owners))
            except FileNotFoundError:
                continue
            except StatusError as error:
                skipped.append(str(error))
    if len(names) > MOST_FILES:
        skipped.append(f"{len(names) - MOST_FILES} more files were not read")
    return found, skipped


def _facts(path: str) -> dict[str, list[str]]:
    lines = (line.partition(":") for line in _content(path).decode(errors="replace").splitlines())
    return {name: text.split() for name, _, text in lines}


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(MOST_BYTES)


def _read(path: str, owners: set[int]) -> dict[str, Any]:
    """Return the content of a process's file.

    :raises StatusError: if it is another user's, or nothing that a process writes
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_uid not in owners:
                raise StatusError(f"{path!r} is not used: it is no file, or another user's")
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StatusError(f"{path!r} cannot be read: {error.strerror}") from None
    try:
        read: dict[str, Any] = _printable(json.loads(data))
        # Whether it has everything, of this release.
        exporters.total([read["metrics"]])
        Report.from_dict(read["report"]).text()
        float(read["written"])
        return read
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError):
        raise StatusError(f"{path!r} is not used: no release of fastio like this one has written it") from None


def _printable(value: Any) -> Any:
    """The same data without characters that control a terminal."""
    from fastio.tables import printable  # not above: dataclasses take long to import

    if isinstance(value, str):
        return printable(value, "")
    if isinstance(value, dict):
        return {_printable(key): _printable(each) for key, each in value.items()}
    return [_printable(each) for each in value] if isinstance(value, list) else value
