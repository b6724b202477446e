"""``fix_cinder_file_volumes``: a volume that is a file keeps its data when it is extended for an image.

A volume of NFS is a file, and upstream opens it by ``wb``, which empties files. An image of unknown size that needs
more than 1 GB is written to a volume that is extended and opened again for each further GB, so all but the last part
becomes zeros. Size and hashes are those of the data that was uploaded. With this patch, the file is opened by ``rb+``.
"""

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.patches.glance_store import _stores
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target

_counts = counters.of(__name__)

_OPEN = f"{_stores.CLASSES['cinder']}._open_cinder_volume"


class _Mode(str):
    """A mode for ``open()`` that equals ``wb``: upstream attaches a volume for writing exactly if it has that one."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return other == "wb"

    def __ne__(self, other: object) -> bool:
        return other != "wb"


def make_open(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Store._open_cinder_volume``."""

    def _open_cinder_volume(self: Any, client: Any, volume: Any, mode: Any) -> Any:
        if mode == "wb":
            _counts.took()
            mode = _Mode("rb+")
        return wrapped(self, client, volume, mode)

    return _open_cinder_volume


PATCH = Patch(
    __name__,
    summary="glance_store's cinder: a volume that is a file keeps its data when it is extended",
    changes="an image of unknown size on a volume that is a file does not lose what was written before an extension",
    targets=(
        Target(
            _OPEN,
            make_open,
            Uses("self, client, volume, mode", "yield attach_mode open"),
            code=_stores.code_of(_OPEN),
        ),
    ),
)
