"""The CPU time of servers while a load goes on, so that what they used in any part of it can be told."""

from __future__ import annotations

import bisect
import contextlib
import threading
import time
from collections.abc import Callable, Iterator

#: Seconds between two samples.
PERIOD = 0.1


class Samples:
    """CPU seconds that were used up to each of many moments."""

    def __init__(self) -> None:
        #: seconds since the epoch
        self.moments: list[float] = []
        self.seconds: list[float] = []

    def add(self, moment: float, seconds: float) -> None:
        self.moments.append(moment)
        self.seconds.append(seconds)

    def until(self, moment: float) -> float:
        """What was used until then, in between two samples in proportion."""
        after = bisect.bisect_right(self.moments, moment)
        if after in (0, len(self.moments)):
            return self.seconds[min(after, len(self.moments) - 1)]
        begin, end = self.moments[after - 1], self.moments[after]
        share = (moment - begin) / (end - begin)
        return self.seconds[after - 1] + share * (self.seconds[after] - self.seconds[after - 1])

    def between(self, begin: float, end: float) -> float:
        """What was used in between."""
        return self.until(end) - self.until(begin)


@contextlib.contextmanager
def sampled(read: Callable[[], float], period: float = PERIOD) -> Iterator[Samples]:
    """Sample ``read()``, which returns CPU seconds, from the begin of the block to its end."""
    samples = Samples()
    ended = threading.Event()

    def go_on() -> None:
        while not ended.wait(period):
            samples.add(time.time(), read())

    samples.add(time.time(), read())
    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        ended.set()
        thread.join()
        samples.add(time.time(), read())
