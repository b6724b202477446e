"""Servers that get less of the processors for a while: some of the cores, or a part of their time.

With a quota, servers are stopped (SIGSTOP) for the rest of a period when they have used up what they have in it, and go
on (SIGCONT) with the next one: what ``cpulimit`` does. Those that do not need more lose nothing.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Collection, Iterator, Sequence

from benchmarks.harness.probes import server_cpu_seconds
from benchmarks.load import Failed

#: Seconds of a period of a quota.
PERIOD = 0.1
#: Seconds between two looks at what stopped servers have used.
LOOK = 0.005


@contextlib.contextmanager
def pinned(pids: Collection[int], cores: Collection[int]) -> Iterator[str]:
    """Have the processes run on these cores only; yields how that is done.

    :raises Failed: if there is no such core
    """
    usable = os.sched_getaffinity(0)
    if not cores or not set(cores) <= usable:
        raise Failed(f"cores {sorted(cores)} are not among those that can be used here: {sorted(usable)}")
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
def quota(pids: Collection[int], processors: float) -> Iterator[str]:
    """Limit the processes to so many processors in all; yields how that is done.

    :raises Failed: if it cannot be
    """
    if processors <= 0:
        raise Failed(f"a quota of {processors:g} processors: it must be more than 0")
    ended = threading.Event()
    thread = threading.Thread(target=_ration, args=[list(pids), processors * PERIOD, ended], daemon=True)
    thread.start()
    try:
        yield f"{processors:g} processors (SIGSTOP and SIGCONT, {PERIOD * 1000:g} ms)"
    finally:
        ended.set()
        thread.join()
        _signal(pids, signal.SIGCONT)


def _ration(pids: Sequence[int], allowance: float, ended: threading.Event) -> None:
    """Stop processes when they have used up what they have in a period, in seconds."""
    # The rest of it; less than 0 after a period in which they used too much.
    left, used = allowance, server_cpu_seconds(pids)
    next_period = time.monotonic() + PERIOD
    running = True
    while not ended.wait(LOOK):
        now = server_cpu_seconds(pids)
        left -= now - used
        used = now
        while time.monotonic() >= next_period:
            left = min(left + allowance, allowance)
            next_period += PERIOD
        if running != (left > 0):
            running = left > 0
            _signal(pids, signal.SIGCONT if running else signal.SIGSTOP)


def _signal(pids: Collection[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
