"""An image's data whose consumer yields to the hub in time, see :mod:`fastio.concurrency.pace`."""

from collections.abc import Callable, Iterator
from typing import Any

from fastio import counters
from fastio.concurrency import current
from fastio.concurrency.pace import Pace
from fastio.counters import Tally
from fastio.io.transparent import SPECIAL, Transparent, class_for, special


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
    self._fastio_pace.yield_when_due()
    data = move(*args, **kwargs)
    if isinstance(data, (bytes, bytearray, memoryview, str)):
        self._fastio_pace.moved(len(data))
    return data


def _iter(self: Any) -> Iterator[Any]:
    iterator = iter(self.__wrapped__)
    return self if iterator is self.__wrapped__ else stand_in(iterator, self._fastio_pace)


Fair.METHODS = {"read": _read, "__iter__": _iter, "__next__": _next, **{name: special(name) for name in SPECIAL}}


def stand_in(data: Any, pace: Pace, base: type[Fair] = Fair) -> Any:
    """A ``base`` that has those special methods that ``data`` has."""
    return class_for(base, data)(data, pace)


def wrap(data: Any, counts: Tally = counters.UNCOUNTED) -> Any:
    """Wrap data that a store's ``get()`` returned, or its ``add()`` is to read, so that its consumer yields in time.

    Natively, and for what can be neither read nor iterated over, ``data`` itself.

    :param counts: of the patch that has it wrapped
    """
    moves = hasattr(data, "read") or hasattr(type(data), "__iter__") or hasattr(type(data), "__next__")
    if not moves or not current.is_green() or issubclass(type(data), Fair):
        return data
    counts.took()
    return stand_in(data, Pace(counts=counts))
