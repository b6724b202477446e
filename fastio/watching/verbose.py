"""A line in the log for each call: that a patch took it, or why it went to upstream's code."""

import logging
import sys
from collections import deque

from fastio.concurrency import current
from fastio.concurrency.try_lock import TryLock
from fastio.counters import Cause

LOG = logging.getLogger("fastio.calls")

_lines: deque[str] = deque()
#: Whoever has taken it writes the lines, also those that come from within: from a handler of the log that sends its
#: lines by a fast path, a finalizer or another thread. So nobody waits.
_turn = TryLock()


def begin() -> None:
    """Have the lines not be left out by the level of the log."""
    LOG.setLevel(logging.INFO)


def tell(patch: str, reason: Cause | None) -> None:
    """Write the line of one call; one that comes from the hub itself, which must not wait, is written with the next."""
    _lines.append(f"fastio: {patch}: " + ("accelerated" if reason is None else f"fell back: {reason.meaning}"))
    if current.hub_of_thread() is not None and current.hub() is None:
        return
    if not _turn.try_acquire():
        return
    try:
        while _lines:
            _write(_lines.popleft())
    finally:
        _turn.release()


def _write(line: str) -> None:
    if LOG.hasHandlers():
        LOG.info("%s", line)
    else:
        # A plain program, which has not set up a log.
        print(line, file=sys.stderr)
