"""Data on its way: objects that stand for it, count what passes, and end a span with it.

An image of 16 MiB passes in 256 chunks of a stock glance-api, so what is done for each counts: a generator's turn, and
two looks at the clock where it is wanted how long the original took.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from fastio.io.transparent import SPECIAL, Transparent, class_for, special
from fastio.trace import spans
from fastio.trace.spans import Span, current

_monotonic = time.monotonic_ns


class Passed:
    """The part of one stream that has passed."""

    __slots__ = ("span", "bytes", "chunks", "ns", "waits", "wait_ns", "failed", "on_end")

    def __init__(self, span: Span, on_end: Callable[[Passed, str], None] | None = None) -> None:
        self.span = span
        self.bytes = 0
        self.chunks = 0
        #: spent by the original
        self.ns = 0
        #: of it in the hub
        self.waits = 0
        self.wait_ns = 0
        #: whether the original has raised an exception
        self.failed = False
        #: called once with the outcome; without it the span is not this stream's to end
        self.on_end = on_end

    def end(self, outcome: str, error: BaseException | None = None) -> None:
        if error is not None:
            self.span.note(error)
        on_end, self.on_end = self.on_end, None
        if on_end is not None:
            on_end(self, outcome)

    def __enter__(self) -> None:
        """While the original is iterated over."""

    def __exit__(self, cls: type[BaseException] | None, error: BaseException | None, traceback: Any) -> None:
        if cls is None or cls is StopIteration:
            self.end(spans.OK)
        elif cls is GeneratorExit:
            self.end(spans.ABORTED)
        else:
            self.failed = True
            self.end(spans.ERROR, error)


class Watched(Transparent):
    """Stands for what a driver's ``get()`` returned, or what its ``add()`` reads.

    Data that is not read to the end was given up: the span then ends as ``aborted`` when the data is closed
    or forgotten.
    """

    __slots__ = ("_fastio_passed",)

    def __init__(self, wrapped: Any, passed: Passed) -> None:
        super().__init__(wrapped)
        object.__setattr__(self, "_fastio_passed", passed)

    def __del__(self) -> None:
        self._fastio_passed.end(spans.ABORTED)


def _moving(self: Any, move: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    passed = self._fastio_passed
    before = current.get()
    current.set(passed.span)
    began = _monotonic()
    try:
        data = move(*args, **kwargs)
    except BaseException as error:
        passed.__exit__(type(error), error, None)
        raise
    finally:
        passed.ns += _monotonic() - began
        current.set(before)
    try:
        passed.bytes += len(data)
    except TypeError:
        # Not data: a mock's.
        pass
    passed.chunks += 1
    return data


def _read(self: Any, *args: Any, **kwargs: Any) -> Any:
    data = _moving(self, self.__wrapped__.read, *args, **kwargs)
    if not data and args[:1] != (0,):
        self._fastio_passed.end(spans.OK)
    return data


def _next(self: Any) -> Any:
    return _moving(self, next, self.__wrapped__)


def _iter(self: Any) -> Iterator[Any]:
    passed = self._fastio_passed
    # Setting the current span for each chunk would cost more than all the rest. The hub's waits meanwhile are seen at
    # the current span.
    outer = current.get() or passed.span
    size = chunks = ns = 0
    waits, wait_ns = outer.waits, outer.wait_ns
    began = _monotonic()
    with passed:
        try:
            # A call of __next__() for each chunk, and the exception at its end, would cost more.
            for data in self.__wrapped__:
                ns += _monotonic() - began
                if outer.waits != waits:
                    passed.waits += outer.waits - waits
                    passed.wait_ns += outer.wait_ns - wait_ns
                size += len(data)
                chunks += 1
                yield data
                waits, wait_ns = outer.waits, outer.wait_ns
                began = _monotonic()
            ns += _monotonic() - began
        finally:
            passed.bytes += size
            passed.chunks += chunks
            passed.ns += ns


def _close(self: Any) -> Any:
    try:
        return self.__wrapped__.close()
    finally:
        self._fastio_passed.end(spans.ABORTED)


Watched.METHODS = {
    "read": _read,
    "close": _close,
    "__iter__": _iter,
    "__next__": _next,
    **{name: special(name) for name in SPECIAL},
}


def watch(data: Any, passed: Passed) -> Any:
    """Return a proxy of ``data``; ``data`` itself where it can be neither read nor iterated over."""
    kind = type(data)
    moves = hasattr(data, "read") or hasattr(kind, "__iter__") or hasattr(kind, "__next__")
    return class_for(Watched, data)(data, passed) if moves else data


class Body(Watched):
    """Stands for the body of a response, which a server iterates over and closes."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        passed = self._fastio_passed
        current.set(passed.span)
        size = chunks = 0
        with passed:
            try:
                for data in self.__wrapped__:
                    size += len(data)
                    chunks += 1
                    yield data
            finally:
                passed.bytes += size
                passed.chunks += chunks

    def close(self) -> None:
        try:
            close = getattr(self.__wrapped__, "close", None)
            if close is not None:
                close()
        finally:
            self._fastio_passed.end(spans.ABORTED)
