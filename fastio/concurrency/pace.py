"""Yielding to the hub: one transfer's share of ``yield_bytes``, and what happens when it is used up.

As far as eventlet knows, a file, a block device or librbd never has to wait, and neither does a pipe or a socket whose
peer keeps up. Without this, a transfer would run from the first byte to the last before any other greenlet runs.
"""

from __future__ import annotations

import time

from fastio import config, counters
from fastio.concurrency import budget, current
from fastio.config import MIB
from fastio.counters import Tally

#: The least that one of many images' transfers moves in a turn, in bytes, unless ``yield_bytes`` is less. Each turn
#: wakes up the client, which then takes all that has come at once. With 256 KiB, eight clients on other machines were
#: slower than with stock (``tox -e bench -- network``), and twenty local ones no faster (``bench -- glance``).
SHARE = MIB

#: Seconds after which a transfer goes through the hub although nothing seems to be waiting there. A release of eventlet
#: may have something to do that :func:`fastio.concurrency.current.is_idle` does not know of.
LONGEST = 0.002


def share(floor: int = SHARE, more: int = 1) -> int:
    """Bytes that one transfer may move now before it yields.

    :param floor: the least that it is, in bytes, unless ``yield_bytes`` is less
    :param more: 0 for one that counts as active already
    """
    return budget.shared.share(config.effective().yield_bytes, more=more, floor=floor)


class Pace:
    """One transfer's share of ``yield_bytes``, which all transfers of a hub have together.

    Callers that move bytes call ``yield_when_due()`` before, and take them off ``left`` after. An exception that
    arrives while others run (a time-out, a kill) so finds nothing that was read and not returned, or written and not
    reported. After a wait, in which others have run, comes ``renew()``.

    Only who yields counts as active meanwhile. As a context manager the transfer does so all the time.

    :param floor: the least that a share is, in bytes, unless ``yield_bytes`` is less
    :param fixed: bytes of each share on a native thread; those yield by themselves, and have no budget in common
    """

    __slots__ = ("_active", "_begun", "_fixed", "_floor", "_ran", "counts", "left")

    def __init__(self, floor: int = SHARE, fixed: int | None = None, counts: Tally = counters.UNCOUNTED) -> None:
        self._floor = floor
        #: of the patch that the transfer is for
        self.counts = counts
        self._fixed = fixed
        self._begun = False
        self._active = False
        #: when it went through the hub last, by time.monotonic()
        self._ran = 0.0
        #: bytes of the share that are left
        self.left = 0

    def yield_when_due(self) -> None:
        """Let other greenlets run that are ready, once the share is used up, and begin another."""
        if self.left <= 0:
            self.yield_to_hub()
            self.renew()

    def yield_to_hub(self) -> bool:
        """Whether other greenlets ran: not before the first share, not natively, and not in the hub's own greenlet."""
        if not self._begun or self._fixed is not None:
            return False
        hub = current.hub()
        if hub is None:
            return False
        now = time.monotonic()
        if now - self._ran < LONGEST and current.is_idle(hub):
            return False
        self._ran = now
        from eventlet import sleep

        counters.io.yields += 1
        # Those who yield at the same time are the ones that share.
        budget.shared.enter(self)
        try:
            sleep(0)
        finally:
            if not self._active:
                budget.shared.leave(self)
        return True

    def renew(self) -> None:
        """Begin a share."""
        self._begun = True
        if self._active:
            budget.shared.enter(self)
        self.left = share(self._floor, 0 if self._active else 1) if self._fixed is None else self._fixed

    def moved(self, count: int) -> None:
        """Note that ``count`` bytes were moved."""
        self.left -= count
        self.counts.bytes += count

    def enter(self) -> Pace:
        """Count as active from now on, also without a yield."""
        self._active = True
        budget.shared.enter(self)
        return self

    def leave(self) -> None:
        """Count as active no more."""
        self._active = False
        budget.shared.leave(self)

    def __enter__(self) -> Pace:
        return self.enter()

    def __exit__(self, *exc_info: object) -> None:
        self.leave()
