"""``image_fairness``: images of all drivers of glance_store let other requests run in time (eventlet).

Upstream's drivers read and write from the first byte to the last without letting other greenlets run. Their sources and
sinks (files, block devices, librbd, or a socket whose peer keeps up) never wait as far as eventlet knows: one large
image keeps every other request of the service waiting. With this patch, the data that ``get()`` returns and the data
that ``add()`` reads yield after their share of ``yield_bytes``. This holds for every chunk size, and for upstream's
drivers as well as for drivers that another patch has changed. On native threads, the patch changes nothing.
"""

from collections.abc import Callable, Iterator
from typing import Any

from fastio import config, counters
from fastio.concurrency.pace import SHARE
from fastio.io import paced
from fastio.patches.glance_store import _stores
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target

_counts = counters.of(__name__)


def make_get(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of a driver's ``get``."""

    def get(self: Any, *args: Any, **kwargs: Any) -> Any:
        data, size = wrapped(self, *args, **kwargs)
        return _paced(data, size), size

    return get


def make_add(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of a driver's ``add``."""

    def add(self: Any, image_id: Any, image_file: Any, *args: Any, **kwargs: Any) -> Any:
        data = _paced(image_file, _stores.size_told(args, kwargs))
        return wrapped(self, image_id, data, *args, **kwargs)

    return add


def _paced(data: Any, size: Any) -> Any:
    """Wrap ``data`` so that it yields; return it unchanged if all of it is within the first share."""
    if _stores.is_at_most(size, min(SHARE, config.effective().yield_bytes)):
        return data
    return paced.wrap(data, _counts)


_GET = Uses("self, *_")
_ADD = Uses("self, image_id, image_file, *_")


def _targets() -> Iterator[Target]:
    for name, path in _stores.CLASSES.items():
        yield Target(f"{path}.get", make_get, _GET, code=_stores.code_of(f"{path}.get"))
        if name not in _stores.READ_ONLY:
            yield Target(f"{path}.add", make_add, _ADD, code=_stores.code_of(f"{path}.add"))


PATCH = Patch(
    __name__,
    summary="glance_store under eventlet: images yield to other requests after their share of yield_bytes",
    targets=tuple(_targets()),
)
