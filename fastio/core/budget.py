"""One fairness budget for all transfers of the process.

A hub resumes every greenlet that is ready before it looks at timers again. With a fixed amount per
greenlet the time of such a turn, and so the lateness of everything else, grows with the number of
transfers; hence one amount for all of them, shared equally.
"""

from __future__ import annotations

import os

#: The least that one transfer moves in a turn, in bytes: what a default pipe holds. Below it the
#: cost of the turn itself (two system calls and the switch) outweighs the bytes.
FLOOR = 64 * 1024


class Budget:
    """Counts the active transfers and tells each of them its share of ``yield_bytes``."""

    def __init__(self) -> None:
        self._active: set[int] = set()
        self._pid = os.getpid()

    def enter(self, transfer: object) -> None:
        """``transfer`` starts to move bytes."""
        self._after_fork()
        self._active.add(id(transfer))

    def leave(self, transfer: object) -> None:
        """``transfer`` has ended, or waits for its peer for longer than a turn."""
        self._active.discard(id(transfer))

    def active(self) -> int:
        """How many transfers share the budget now."""
        self._after_fork()
        return len(self._active)

    def share(self, yield_bytes: int, more: int = 0, floor: int = FLOOR) -> int:
        """Bytes that one of the active transfers, and ``more`` that have not entered, may move before it gives way.

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

    def _after_fork(self) -> None:
        # The parent's transfers do not go on in the child.
        pid = os.getpid()
        if pid != self._pid:
            self._active.clear()
            self._pid = pid


#: The budget that every fast path uses.
shared = Budget()
