"""The CPU time of servers while a load goes on, so that what they used in any part of it can be told."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import numpy

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

    def between(self, begin: float, end: float) -> float:
        """What was used in between, between two samples in proportion."""
        first, last = numpy.interp([begin, end], self.moments, self.seconds)
        return float(last - first)


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
