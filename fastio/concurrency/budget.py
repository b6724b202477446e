"""One fairness budget for all transfers of the process.

A hub resumes every greenlet that is ready before it looks at timers again. With a fixed amount for each greenlet, such
a turn would take longer with each transfer, and delay everything else. One amount for all transfers, which they share
equally, avoids that.

Only transfers that move bytes take part. A transfer that waits for its peer for longer than a turn is forgotten without
being reported, and so is a transfer whose thread has ended: there is no lock here that a finalizer, a signal handler or
a fork could want.
"""

import os
import time
from collections.abc import Callable

#: The least that one transfer moves in a turn, in bytes: what a default pipe holds. Below it the
#: cost of the turn itself (two system calls and the switch) outweighs the bytes.
FLOOR = 64 * 1024

#: Seconds, many turns. A transfer that has moved nothing for one to two such periods is forgotten.
PERIOD = 0.05


class Budget:
    """Counts the active transfers and gives each of them its share of ``yield_bytes``."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        #: transfer -> the period in which it said last that it moves bytes. Each operation on it is
        #: atomic; what two threads do at the same time makes the count close, not exact.
        self._active: dict[int, int] = {}
        self._period = 0
        self._pid = os.getpid()

    def enter(self, transfer: object) -> None:
        """``transfer`` moves bytes now; to be said again in each turn."""
        self._active[id(transfer)] = self._now()

    def leave(self, transfer: object) -> None:
        """``transfer`` has ended."""
        self._active.pop(id(transfer), None)

    def active(self) -> int:
        """How many transfers share the budget now."""
        self._now()
        return len(self._active)

    def share(self, yield_bytes: int, more: int = 0, floor: int = FLOOR) -> int:
        """Bytes that one of the active transfers, and ``more`` that have not entered, may move before it yields.

        :param floor: the least that it is, in bytes, unless ``yield_bytes`` is less
        """
        return self._part(yield_bytes, self.active() + more, floor)

    def pipe_size(self, size: int) -> int:
        """The capacity to ask for one of the active transfers' pipes, where ``size`` is for one alone.

        With many of them smaller pipes are faster and fairer (less memory in flight than the
        processor's cache holds, shorter turns), and they share what the kernel grants a user.
        """
        return self._part(size, self.active(), FLOOR)

    @staticmethod
    def _part(size: int, active: int, floor: int) -> int:
        return size if active <= 1 else max(min(floor, size), size // active)

    def _now(self) -> int:
        period = int(self._clock() / PERIOD)
        if period != self._period:
            self._period = period
            for transfer, last in list(self._active.items()):
                if last < period - 1:
                    self._active.pop(transfer, None)
        pid = os.getpid()
        if pid != self._pid:
            # A fork: the parent's transfers do not go on in the child.
            self._active.clear()
            self._pid = pid
        return period


#: The budget that every fast path uses.
shared = Budget()
