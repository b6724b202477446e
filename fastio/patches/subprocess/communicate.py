"""``communicate``: ``subprocess.Popen._communicate`` on native threads (POSIX).

Upstream reads 32 KiB at a time into a list that is joined at the end, from a pipe of 64 KiB, and
writes 4 KiB at a time. Here the pipe is made larger once the child shows that it has much to say,
everything that a pipe holds is read at once into one growing result, and input goes out in slices
as large as the pipe takes. Input that can not be sliced by bytes is left to upstream's code, and so
is everything in a thread that has a hub.
"""

from __future__ import annotations

import contextlib
import selectors
from collections.abc import Callable, Iterator
from typing import Any

from fastio.concurrency import current
from fastio.concurrency.pace import Pace
from fastio.patches.subprocess import _popen
from fastio.patching import holders
from fastio.patching.registry import Layer, Patch, Target


class _NativeSelector:
    """A :class:`fastio.io.exchange.Selector` on the selector class that ``subprocess`` chose."""

    def __init__(self, selector: Any) -> None:
        self._selector = selector

    def watch_read(self, fd: int) -> None:
        self._selector.register(fd, selectors.EVENT_READ)

    def watch_write(self, fd: int) -> None:
        self._selector.register(fd, selectors.EVENT_WRITE)

    def forget(self, fd: int) -> None:
        self._selector.unregister(fd)

    def wait(self, timeout: float | None) -> list[int]:
        return [key.fd for key, _ in self._selector.select(timeout)]


def mode(slot: Any) -> _popen.Mode:
    """How the Popen of native threads waits, with the selector class of its module."""
    namespace = slot.original.__globals__

    @contextlib.contextmanager
    def open_selector() -> Iterator[_NativeSelector]:
        with namespace["_PopenSelector"]() as selector:
            yield _NativeSelector(selector)

    return _popen.Mode(open_selector, lambda settings: Pace(fixed=settings.chunk_size), current.may_block)


def make(below: Callable[..., Any], slot: Any) -> Callable[..., Any]:
    """The replacement of ``Popen._communicate``."""
    return _popen.replacement(below, slot, mode(slot))


PATCH = Patch(
    __name__,
    summary="Popen.communicate() on native threads: larger pipe, large reads into one result, large writes",
    layer=Layer.REPLACE,
    targets=(Target("subprocess:Popen._communicate", make, _popen.RELIES_ON, find_owner=holders.native_popen),),
)
