"""``store_hashing``: glance_store's drivers hash what they are given next to writing it.

``add()`` computes md5 and the multihash one after the other in the thread that reads and writes, and that, not the
store, is what limits an upload. All drivers get their hash objects from ``glance_store.common.utils.get_hasher``. It
now returns ones whose ``update()`` leaves the data to a small pool of native threads, where md5, the multihash and the
transfer run in parallel: see :mod:`fastio.core.hashing`. Results, exceptions and attributes are hashlib's.

In memory are at most 4 MiB (or one chunk, if that is larger) for each upload beyond what upstream holds, and less with
many at once. Images below 256 KiB are hashed as before, and no thread is started for them. Under eventlet ``update()``
and ``hexdigest()`` let other greenlets run while they wait for a thread. A fork waits until what was handed over is
hashed (a few milliseconds for each upload), so that the child can go on with a hash that its parent began.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from fastio.core import hashing
from fastio.patches import _fair, _stores
from fastio.registry import Patch


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


def make(below: Callable[..., Any], slot: Any) -> Callable[..., Any]:
    """The wrapper of ``get_hasher``."""

    def get_hasher(*args: Any, **kwargs: Any) -> Any:
        return hashing.BackgroundHash(below(*args, **kwargs), pool)

    return get_hasher


PATCH = Patch(
    name="store_hashing",
    summary="glance_store's add(): md5 and the multihash in native threads, next to each other and to the write",
    targets=(_stores.method("glance_store.common.utils", "get_hasher", make),),
    requires=(_stores.GLANCE_STORE,),
)
