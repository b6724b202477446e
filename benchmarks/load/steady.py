"""Whether a load has become steady: then a longer run would say the same.

The last seconds are divided into quarters. They are steady if operations, bytes and the mean time of an operation each
differ between the quarters by no more than a part of their mean, which the plan gives. The benchmark warp ends its runs
in a similar way (``--autoterm``).
"""

from collections.abc import Sequence
from typing import NamedTuple

QUARTERS = 4


class Count(NamedTuple):
    """What was done until a moment, since the begin of the run."""

    operations: int = 0
    bytes: int = 0
    #: that the operations took together
    seconds: float = 0.0


class Steadiness:
    """Looks at what was done so far, again and again.

    :param seconds: that have to be steady
    :param within: the part by which the quarters may differ
    """

    def __init__(self, seconds: float, within: float) -> None:
        self._seconds = seconds
        self._within = within
        self._seen: list[tuple[float, Count]] = []

    def reached(self, moment: float, done: Count) -> bool:
        """Whether it is steady at this moment, in seconds since any point in time; moments come in order."""
        self._seen.append((moment, done))
        edges = [moment - self._seconds * (1 - part / QUARTERS) for part in range(QUARTERS + 1)]
        if self._seen[0][0] > edges[0]:
            return False
        # Nobody looks back further.
        while self._seen[1][0] <= edges[0]:
            del self._seen[0]
        totals = [self._at(edge) for edge in edges]
        parts = [[after - before for before, after in zip(*each, strict=True)]
                 for each in zip(totals, totals[1:], strict=False)]  # fmt: skip
        operations, moved, taken = zip(*parts, strict=True)
        if not all(operations):
            return False
        times = [seconds / count for seconds, count in zip(taken, operations, strict=True)]
        return all(map(self._alike, (operations, moved, times)))

    def _at(self, moment: float) -> tuple[float, ...]:
        """What was done until then, by a straight line between two looks."""
        for (before, first), (after, second) in zip(self._seen, self._seen[1:], strict=False):
            if moment <= after:
                part = (moment - before) / (after - before)
                return tuple(old + (new - old) * part for old, new in zip(first, second, strict=True))
        return tuple(map(float, self._seen[-1][1]))

    def _alike(self, figures: Sequence[float]) -> bool:
        return max(figures) - min(figures) <= self._within * sum(figures) / len(figures)
