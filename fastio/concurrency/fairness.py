"""Giving way to the hub between the chunks of an image.

A file, a block device or librbd never has to wait as eventlet sees it, and neither has a socket whose peer keeps up;
so a transfer from or to one of them would run from the first byte to the last before any other greenlet does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from fastio import config, counters
from fastio.concurrency import budget
from fastio.concurrency.current import hub, is_green
from fastio.concurrency.transparent import SPECIAL, Transparent, special
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
        if self._left is not None and hub() is not None:
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


class Fair(Transparent):
    """Stands for an image's data (a file, an iterator, an object that has one) and keeps the pace."""

    __slots__ = ("_fastio_pace",)

    def __init__(self, wrapped: Any, pace: Pace) -> None:
        super().__init__(wrapped)
        object.__setattr__(self, "_fastio_pace", pace)


def _read(self: Any, *args: Any, **kwargs: Any) -> Any:
    return _moving(self, self.__wrapped__.read, *args, **kwargs)


def _next(self: Any) -> Any:
    return _moving(self, next, self.__wrapped__)


def _moving(self: Any, move: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    self._fastio_pace.give_way()
    data = move(*args, **kwargs)
    if isinstance(data, (bytes, bytearray, memoryview, str)):
        self._fastio_pace.moved(len(data))
    return data


def _iter(self: Any) -> Iterator[Any]:
    iterator = iter(self.__wrapped__)
    return self if iterator is self.__wrapped__ else stand_in(iterator, self._fastio_pace)


_METHODS = {"read": _read, "__iter__": _iter, "__next__": _next, **{name: special(name) for name in SPECIAL}}


@functools.cache
def _class(base: type[Fair], names: tuple[str, ...]) -> type[Fair]:
    """A class with these methods; by names, because some drivers make a new class for every image."""
    return type(base.__name__, (base,), {"__slots__": (), **{name: _METHODS[name] for name in names}})


def stand_in(data: Any, pace: Pace, base: type[Fair] = Fair) -> Any:
    """A ``base`` that has those special methods that ``data`` has."""
    has = [name for name in _METHODS if hasattr(data if name == "read" else type(data), name)]
    cls = _class(base, tuple(name for name in has if name not in vars(base)))  # type: ignore[arg-type]
    return cls(data, pace)


def wrap(data: Any) -> Any:
    """What a store's ``get()`` returned, or what its ``add()`` is to read, so that its consumer gives way in time.

    Natively, and for what can be neither read nor iterated over, ``data`` itself.
    """
    moves = hasattr(data, "read") or hasattr(type(data), "__iter__") or hasattr(type(data), "__next__")
    if not moves or not is_green() or issubclass(type(data), Fair):
        return data
    return stand_in(data, Pace())
