"""``fix_swift_last_segment``: uploads of large images to Swift succeed if the last segment is shorter than the others.

Since glance_store 5.0, ``add()`` announces every segment of an image of known size with the full size of a segment.
The last segment mostly has less. Swift waits for the rest, by default for a minute, and then the upload of the segment
and of the image fails. Up to 4.10 the last segment was announced with the rest of the image, and with this patch it is
again. An image file that has more data than its size still raises ``Invalid``, which upstream intends.
"""

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target

_counts = counters.of(__name__)


def _for_upload(store: Any, image_size: int) -> Any:
    """``store`` as one upload is to see it: a segment is never larger than what is left of the image.

    Upstream takes ``large_object_chunk_size`` anew for each segment, and then makes one ``reader_class`` for it. The
    attributes are the store's own, so that what is assigned during the upload gets there too.
    """
    left = image_size

    def segment_size(self: Any) -> int:
        # One byte more than the image should have: upstream finds out by that whether it has more.
        return min(store.large_object_chunk_size, max(left, 1))

    def reader_class(self: Any) -> Callable[..., Any]:
        def reader(fd: Any, checksum: Any, os_hash_value: Any, total: int, *args: Any, **kwargs: Any) -> Any:
            nonlocal left
            left -= total
            return store.reader_class(fd, checksum, os_hash_value, total, *args, **kwargs)

        return reader

    cls = type(store)
    properties = {"large_object_chunk_size": property(segment_size), "reader_class": property(reader_class)}
    view: Any = object.__new__(type(cls.__name__, (cls,), properties))
    view.__dict__ = vars(store)
    return view


def make_add(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``BaseStore.add``."""

    def add(self: Any, image_id: Any, image_file: Any, image_size: int, *args: Any, **kwargs: Any) -> Any:
        if image_size and image_size >= self.large_object_size:
            _counts.took()
            self = _for_upload(self, image_size)
        return wrapped(self, image_id, image_file, image_size, *args, **kwargs)

    return add


PATCH = Patch(
    __name__,
    summary="glance_store's swift: the last segment of a large image is announced with its own size",
    changes="the last segment of a large image is announced with its own size",
    targets=(
        Target(
            "glance_store._drivers.swift.store:BaseStore.add",
            make_add,
            Uses(
                "self, image_id, image_file, image_size, *_",
                "large_object_size large_object_chunk_size reader_class content_length",
            ),
        ),
    ),
    requires=("glance_store >= 5.0, < 6",),
    not_needed_in=("glance_store < 5",),
)
