"""Measurements beside a run: how late others are meanwhile, and the resources of the servers' processes.

:mod:`benchmarks.harness.other_requests` asks a server meanwhile.
"""

import contextlib
import time
from collections.abc import Iterator, Sequence

from benchmarks.harness.worker import measure, percentile, surroundings

#: Seconds between two heartbeats.
PERIOD = 0.001


class Heartbeat:
    """A greenlet that sleeps for a period again and again, and notes how late it is run, in seconds."""

    def __init__(self, period: float = PERIOD) -> None:
        import eventlet

        self.period = period
        self.late: list[float] = []
        self._sleep = eventlet.sleep
        self._greenlet = eventlet.spawn(self._beat)
        # From here on it sleeps, and nothing of its start is measured.
        eventlet.sleep(2 * period)
        self.late.clear()

    def _beat(self) -> None:
        clock = time.perf_counter
        before = clock()
        while True:
            self._sleep(self.period)
            now = clock()
            self.late.append(now - before - self.period)
            before = now

    def stop(self) -> dict[str, float]:
        """Let a heartbeat that is due happen, then end; returns the figures."""
        self._sleep(self.period)
        self._greenlet.kill()
        return lateness(self.late, self.period)


def arrival_percentile(stops: Sequence[float], duration: float, share: float) -> float:
    """Return the wait that ``share`` of the requests that come at any instant of ``duration`` seconds do not exceed.

    One that comes while the hub runs nothing else for s seconds waits between 0 and s.
    """
    low, high = 0.0, max(stops)
    for _ in range(50):
        middle = (low + high) / 2
        beyond = sum(stop - middle for stop in stops if stop > middle)
        low, high = (middle, high) if beyond > (1 - share) * duration else (low, middle)
    return high


def lateness(late: Sequence[float], period: float) -> dict[str, float]:
    """The figures of a heartbeat, in milliseconds.

    Percentiles of the heartbeats count a long stop as one late heartbeat; ``arrival_p99_ms``, the 99th percentile of
    what a request that comes at any instant waits for the hub, counts it by its length.
    """
    late = [max(0.0, value) for value in late]
    return {
        "p50_ms": percentile(late, 0.50) * 1000,
        "p99_ms": percentile(late, 0.99) * 1000,
        "worst_ms": max(late) * 1000,
        "arrival_p99_ms": arrival_percentile(late, sum(late) + len(late) * period, 0.99) * 1000,
        "heartbeats": len(late),
    }


def server_cpu_seconds(pids: Sequence[int]) -> float:
    """CPU time of the server's processes so far, all threads; without those that have ended.

    From each process's CPU clock, clock_getcpuclockid(3): /proc has it in hundredths of a second only.
    """
    spent = 0.0
    for pid in pids:
        with contextlib.suppress(OSError):
            spent += time.clock_gettime((~pid << 3) | 2)
    return spent


@contextlib.contextmanager
def measured(
    heartbeat: bool = False, pids: Sequence[int] | None = None, waiting: bool = False
) -> Iterator[dict[str, float]]:  # fmt: skip
    """Measure the block; yields a dictionary that has all figures when the block is left.

    :param heartbeat: those of a heartbeat as well
    :param pids: processes of the server; by default of the case's backend
    :param waiting: this process only waits, so nothing is said of its memory, its reads and its waits
    """
    pids = surroundings().get("pids", []) if pids is None else pids
    figures: dict[str, float] = {}
    beating = Heartbeat() if heartbeat else None
    before = server_cpu_seconds(pids)
    with measure() as found:
        yield figures
    if pids:
        figures["server_cpu_seconds"] = server_cpu_seconds(pids) - before
    if beating is not None:
        figures.update(beating.stop())
    own = {name: value for name, value in vars(found).items() if value is not None}
    figures.update({name: own[name] for name in ("seconds", "cpu_seconds")} if waiting else own)
