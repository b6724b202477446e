"""The CPU time of the load generator itself: it must not be what is measured."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Share of a processor, over a second, from which a worker is busy: it is one thread, and can have no more than 1.
BUSY = 0.9
#: Share of the seconds of a run in which a worker may be busy.
TOLERATED = 0.1


class Sampler:
    """The share of a processor that this process used, second by second."""

    def __init__(self) -> None:
        #: seconds since the epoch at the end of each, and the share
        self.samples: list[tuple[float, float]] = []
        self._wall = time.perf_counter()
        self._spent = time.process_time()

    def sample(self) -> None:
        """Add a sample for the time since the last one."""
        wall, spent = time.perf_counter(), time.process_time()
        # Much less than a hundredth of a second is below what the kernel may count in.
        if wall - self._wall > 0.01:
            self.samples.append((round(time.time(), 3), round((spent - self._spent) / (wall - self._wall), 4)))
            self._wall, self._spent = wall, spent

    def go_on(self, sleep: Callable[[float], object], seconds: float = 1.0) -> None:
        """Sample for ever; for a greenlet."""
        while True:
            sleep(seconds)
            self.sample()


def limited(share: float) -> bool:
    """Whether a worker that used so much of a processor may have been what limited the run.

    :param share: that of the 90th of a hundred seconds, see :data:`TOLERATED`
    """
    return share >= BUSY


def limit_note(share: float) -> str:
    """That a run was limited by its load generator."""
    return (
        f"LIMITED BY THE LOAD GENERATOR: a worker used {share:.0%} of its processor or more in {TOLERATED:.0%} of the "
        "seconds; more workers are needed to load the service"
    )
