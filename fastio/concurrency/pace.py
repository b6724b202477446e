"""Giving way to the hub: one transfer's share of ``yield_bytes``, and what happens once it is used up.

A file, a block device or librbd never has to wait as eventlet sees it, and neither has a pipe or a socket whose peer
keeps up; so a transfer from or to one of them would run from the first byte to the last before any other greenlet does.
"""

from __future__ import annotations

from fastio import config, counters
from fastio.concurrency import budget, current
from fastio.config import KIB

#: The least that one of many images' transfers moves in a turn, in bytes, unless ``yield_bytes`` is less. A turn of
#: glance's costs more than one of a pipe's: twenty downloads at a time with 64 KiB in each were slower than stock's.
SHARE = 256 * KIB


def share(floor: int = SHARE) -> int:
    """Bytes that one more transfer may move now before it gives way.

    :param floor: the least that it is, in bytes, unless ``yield_bytes`` is less
    """
    return budget.shared.share(config.effective().yield_bytes, more=1, floor=floor)


class Pace:
    """One transfer's share of ``yield_bytes``, which all transfers of a hub have together.

    ``give_way()`` comes before bytes are moved: an exception that arrives while others run (a time-out, a kill)
    must find nothing that was read and not returned, or written and not told.

    :param floor: the least that a share is, in bytes, unless ``yield_bytes`` is less
    """

    __slots__ = ("_floor", "_left")

    def __init__(self, floor: int = SHARE) -> None:
        self._floor = floor
        self._left: int | None = None

    @property
    def left(self) -> int:
        """Bytes of the share that are left, once ``give_way()`` has been called."""
        return self._left or 0

    def give_way(self) -> None:
        """Let other greenlets run, once the share is used up."""
        if self._left is not None and self._left > 0:
            return
        if self._left is not None and current.hub() is not None:
            from eventlet import sleep

            counters.yields += 1
            # Those who give way at the same time are the ones that share.
            budget.shared.enter(self)
            try:
                sleep(0)
            finally:
                budget.shared.leave(self)
        self._left = share(self._floor)

    def moved(self, count: int) -> None:
        """So many bytes were moved."""
        if self._left is not None:
            self._left -= count
