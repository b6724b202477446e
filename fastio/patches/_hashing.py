"""The threads that hash for all patches of this process, and how a greenlet waits for them."""

from __future__ import annotations

import os
import sys
from typing import Any

from fastio.core import hashing
from fastio.patches import _fair


def native_threading() -> Any:
    """``threading`` of the system's threads, also where eventlet has put its own in the place."""
    patcher = sys.modules.get("eventlet.patcher")
    if patcher is not None:
        return patcher.original("threading")
    import threading

    return threading


class HubBell:
    """Lets other greenlets run while one waits for a thread: a descriptor in the hub, a third of what tpool takes."""

    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def wait(self) -> None:
        from eventlet import hubs

        from fastio.patches import _hub

        # The number may have been another file's a moment ago, which the hub must be told.
        hubs.notify_opened(self._fd)
        _hub.wait_readable(self._fd, None)

    def ring(self) -> None:
        os.eventfd_write(self._fd, 1)

    def close(self) -> None:
        os.close(self._fd)


def new_bell() -> hashing.Bell:
    """A wait in the hub for a greenlet that has one; a native thread (eventlet's tpool for one) is blocked."""
    if _fair.hub() is not None:
        try:
            return HubBell()
        except OSError:
            # There are no descriptors left: as upstream, the hub waits as well.
            pass
    return hashing.NativeBell(native_threading().Lock())


#: The threads of this process.
pool = hashing.Pool(native_threading, new_bell)
