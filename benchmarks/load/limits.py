"""Servers that get less of the processors for a while: some of the cores, or a part of their time.

A quota is given by a control group where this process may make one (``cpu.max`` of version 2, ``cpu.cfs_quota_us`` of
version 1). Elsewhere the servers are stopped (SIGSTOP) for the rest of a period when they have used up what they have
in it, and go on (SIGCONT) with the next one: what ``cpulimit`` does. Either way, who does not need more loses nothing.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from benchmarks.load import Failed

#: Seconds of a period of a quota, the kernel's default.
PERIOD = 0.1
#: Seconds between two looks at what stopped servers have used.
LOOK = 0.005

ROOT = Path("/sys/fs/cgroup")


class LimitError(Failed):
    """A limit that cannot be set here."""


@contextlib.contextmanager
def pinned(pids: Collection[int], cores: Collection[int]) -> Iterator[str]:
    """Have the processes run on these cores only; yields how that is done.

    :raises LimitError: if there is no such core
    """
    usable = os.sched_getaffinity(0)
    if not cores or not set(cores) <= usable:
        raise LimitError(f"cores {sorted(cores)} are not among those that can be used here: {sorted(usable)}")
    before = {}
    try:
        for pid in pids:
            for thread in _threads(pid):
                with contextlib.suppress(ProcessLookupError):
                    before[thread] = os.sched_getaffinity(thread)
                    os.sched_setaffinity(thread, cores)
        yield f"pinned to {len(cores)} of {len(usable)} cores (sched_setaffinity)"
    finally:
        for pid in pids:
            for thread in _threads(pid):
                with contextlib.suppress(ProcessLookupError, OSError):
                    # A thread that has begun since then has what its process had.
                    os.sched_setaffinity(thread, before.get(thread, before.get(pid, usable)))


def _threads(pid: int) -> list[int]:
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except (FileNotFoundError, ProcessLookupError):
        return []


@contextlib.contextmanager
def quota(pids: Collection[int], processors: float, means: str = "auto") -> Iterator[str]:
    """Limit the processes to so many processors in all; yields by which means.

    :param means: ``cgroup``, ``signals``, or ``auto``: the first of these that can be had
    :raises LimitError: if it cannot
    """
    if processors <= 0:
        raise LimitError(f"a quota of {processors:g} processors: it must be more than 0")
    if means not in ("auto", "cgroup", "signals"):
        raise LimitError(f"means {means!r} is not one of auto, cgroup, signals")
    if means != "signals":
        try:
            group = _Group(processors)
        except OSError as error:
            if means == "cgroup":
                raise LimitError(f"no control group can be made here: {error}") from error
        else:
            with group.holding(pids):
                yield f"{processors:g} processors ({group.setting})"
            return
    with _DutyCycle(pids, processors).going_on():
        yield f"{processors:g} processors (SIGSTOP and SIGCONT, {PERIOD * 1000:g} ms)"


class _Group:
    """A control group with a quota, below that of this process."""

    def __init__(self, processors: float) -> None:
        period = round(PERIOD * 1e6)
        allowed = round(processors * period)
        second = (ROOT / "cgroup.controllers").exists()
        self._above = _own_group("" if second else "cpu", ROOT if second else ROOT / "cpu")
        self._path = self._above / f"fastio-{os.getpid()}-{threading.get_ident()}"
        self._path.mkdir()
        try:
            if second:
                self.setting = f"cpu.max {allowed} {period}"
                (self._path / "cpu.max").write_text(f"{allowed} {period}")
            else:
                self.setting = f"cpu.cfs_quota_us {allowed}"
                (self._path / "cpu.cfs_period_us").write_text(str(period))
                (self._path / "cpu.cfs_quota_us").write_text(str(allowed))
        except OSError:
            self._path.rmdir()
            raise

    @contextlib.contextmanager
    def holding(self, pids: Collection[int]) -> Iterator[None]:
        try:
            for pid in pids:
                self._move(pid, self._path)
            yield
        finally:
            for left in (self._path / "cgroup.procs").read_text().split():
                self._move(int(left), self._above)
            for _ in range(100):
                with contextlib.suppress(OSError):
                    self._path.rmdir()
                    break
                # One that has just ended is in it for a moment.
                time.sleep(0.02)

    @staticmethod
    def _move(pid: int, group: Path) -> None:
        with contextlib.suppress(ProcessLookupError):
            (group / "cgroup.procs").write_text(str(pid))


def _own_group(controller: str, root: Path) -> Path:
    """The group of this process in a hierarchy."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(",") and (root / path.lstrip("/")).is_dir():
            return root / path.lstrip("/")
    raise FileNotFoundError(f"no control group of this process below {root}")


class _DutyCycle:
    """Stops processes when they have used up what they have in a period."""

    def __init__(self, pids: Collection[int], processors: float) -> None:
        self._pids = list(pids)
        self._processors = processors
        self._ended = threading.Event()

    @contextlib.contextmanager
    def going_on(self) -> Iterator[None]:
        thread = threading.Thread(target=self._go_on, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()
            self._signal(signal.SIGCONT)

    def _go_on(self) -> None:
        allowance = self._processors * PERIOD
        # The rest of it; less than 0 after a period in which they used too much.
        left, used = allowance, cpu_seconds(self._pids)
        next_period = time.monotonic() + PERIOD
        running = True
        while not self._ended.wait(LOOK):
            now = cpu_seconds(self._pids)
            left -= now - used
            used = now
            while time.monotonic() >= next_period:
                left = min(left + allowance, allowance)
                next_period += PERIOD
            if running != (left > 0):
                running = left > 0
                self._signal(signal.SIGCONT if running else signal.SIGSTOP)

    def _signal(self, number: signal.Signals) -> None:
        for pid in self._pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def cpu_seconds(pids: Collection[int]) -> float:
    """CPU time of the processes' threads, in finer steps than the ticks of the clock where the kernel tells these."""
    nanoseconds = 0
    for pid in pids:
        for thread in _threads(pid):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                nanoseconds += int(file.read().split()[0])
    return nanoseconds / 1e9
