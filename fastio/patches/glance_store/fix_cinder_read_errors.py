"""``fix_cinder_read_errors``: an image on a broken volume ends with an error, and does not seem complete.

Upstream's iterator (glance_store 5.6 and 5.7) reads one chunk ahead, and takes any error there for the end of the
image. If a device fails at its fifth chunk, the image has four chunks and there is no exception. With this patch, the
chunk that was read before is delivered, and the next call raises the error. The volume is detached at the same time as
before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target
from fastio.proxy import Proxy

_counts = counters.of(__name__)


class _Noting(Proxy):
    """An iterator that remembers the exception that ended it."""

    _error: Exception | None = None

    def __iter__(self) -> _Noting:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self.__wrapped__)
        except StopIteration:
            raise
        except Exception as error:
            self._error = error
            raise


def make_next(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``CinderVolumeIterator.__next__``."""

    def __next__(self: Any) -> bytes:
        error = vars(self).pop("_fastio_error", None)
        if error is not None:
            _counts.took()
            raise error
        iterator = self._iterator
        self._iterator = noting = _Noting(iterator)
        try:
            return wrapped(self)
        finally:
            self._iterator = iterator
            if noting._error is not None:
                self._fastio_error = noting._error

    return __next__


PATCH = Patch(
    __name__,
    summary="glance_store's cinder: an error while reading ends the image with that error",
    changes="an image whose volume fails ends with an error, and does not seem complete",
    targets=(
        Target(
            "glance_store._drivers.cinder.store:CinderVolumeIterator.__next__",
            make_next,
            Uses("self", "_next next _iterator Exception _has_next close"),
            {"__init__": Uses("self, iterator", "_iterator"), "close": Uses("self", "_iterator close")},
        ),
    ),
    # They read no chunk ahead.
    not_needed_in=("glance_store < 5.6",),
)
