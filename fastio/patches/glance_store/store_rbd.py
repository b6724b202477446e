"""``store_rbd``: glance_store's rbd driver writes while it hashes, and does not block the hub while data moves.

Upstream reads or writes one chunk after the other, and waits for each. Under eventlet, everything else in the process
waits, too. With this patch:

* ``add()`` reads and hashes while the chunks before are written by librbd's ``aio_write``, no more than 4 chunks or
  4 MiB in flight. ``get()`` reads nothing ahead, which took CPU time for no gain.
* Under eventlet a native thread waits for these reads and writes. Opening, creating and deleting an image block the
  hub as long as in upstream's code, because a thread that made these calls would run Python code.
* ``store_chunk_sizes`` sets the chunk. It changes neither the object size of new images nor the step by which an image
  of unknown size grows. ``rbd_store_chunk_size`` still sets both.
* With ``rbd_thin_provisioning``, a chunk of zeros is found by comparing memory instead of looking at each byte.

If a read fails, it is repeated, and raises what librbd raises. A write that fails behind is repeated in the next call
on the image, and raises the same there, and so does each later call until the write succeeds. The image is not resized,
snapshotted or closed before everything is written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.concurrency import current, offload
from fastio.config import MIB
from fastio.counters import Reason
from fastio.io import sparse
from fastio.patches.glance_store import _stores
from fastio.patching import namespaces
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target
from fastio.proxy import Proxy

_counts = counters.of(__name__)

#: Of the class that all drivers come from; ``configure_add`` assigns what the option says to the instance.
STOCK_CHUNK = 4 * MIB

#: Bytes of one write: with several under way the best of a sweep. Larger ones are not faster, and cost more: malloc
#: gives their memory back to the system each time, and gets it again page by page.
CHUNK = MIB

#: Bytes of one read: upstream's.
READ_CHUNK = 8 * MIB

#: Chunks, and bytes, that are written after ``write`` has returned; one chunk if that is larger.
BEHIND = 4
BEHIND_BYTES = 4 * MIB


class _Library(Proxy):
    """The module ``rbd``, whose images are of a class of ours."""

    def __init__(self, library: Any, image: Callable[[Any], Any]) -> None:
        super().__init__(library)
        self._image = image

    def Image(self, *args: Any, **kwargs: Any) -> Any:
        return self._image(self.__wrapped__.Image(*args, **kwargs))


def _with_images(image: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the replacement of the driver's name ``rbd``, which is None where the library is not installed."""
    return lambda library: None if library is None else _Library(library, image)


class _Request:
    """One ``aio_read`` or ``aio_write`` under way.

    :param data: what is written
    """

    def __init__(self, offset: int, length: int, data: bytes = b"") -> None:
        self.offset = offset
        self.length = length
        self.data = data
        self.completion: Any = None
        self._result: int | None = None
        self._answers: dict[Any, bytes | None] = {}

    @property
    def done(self) -> Callable[..., Any]:
        """The callback of librbd, called in librbd's thread with the completion and the data: it must be C."""
        return self._answers.setdefault

    def wait(self) -> int:
        """The number that librbd returns, below 0 for an error; other greenlets run meanwhile."""
        if self._result is None:
            if self._answers:
                # It may yet be in the callback, which the completion must outlive.
                self.wait_natively()
            else:
                offload.run(self.completion.wait_for_complete_and_cb)
            self._result = self.completion.get_return_value()
        return self._result

    def end(self) -> bytes | None:
        """The data. Request and completion refer to each other, and would keep it until the next garbage collection."""
        data = self._answers.popitem()[1] if self._answers else None
        self.completion = None
        return data

    def wait_natively(self) -> None:
        if self._result is None:
            self.completion.wait_for_complete_and_cb()


class _OpenImage(Proxy):
    """Stands for an image of librbd, for calls that do not want the original itself."""

    def __init__(self, image: Any) -> None:
        super().__init__(image)
        self._under_way: deque[_Request] = deque()

    def _settle(self) -> None:
        """Wait until no write is under way; a failure raises."""

    def __enter__(self) -> _OpenImage:
        self.__wrapped__.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> Any:
        try:
            if kind is None:
                self._settle()
        finally:
            # Perhaps the garbage collector ends a generator, and nothing may switch greenlets then.
            while self._under_way:
                self._under_way.popleft().wait_natively()
            closed = self.__wrapped__.__exit__(kind, error, traceback)
        return closed


class GreenReads(_OpenImage):
    """An image whose reads let other greenlets run; natively they are librbd's own."""

    def read(self, offset: int, length: int, *flags: Any) -> bytes:
        if flags or not length or current.hub() is None:
            return self.__wrapped__.read(offset, length, *flags)
        request = _Request(offset, length)
        request.completion = self.__wrapped__.aio_read(offset, length, request.done)
        self._under_way.append(request)
        count = request.wait()
        self._under_way.remove(request)
        data = request.end()
        if count != length or data is None:
            _counts.fell_back(Reason.REFUSED)
            # Raises what it does, or makes up for it.
            return self.__wrapped__.read(offset, length)
        _counts.moved(length)
        return data


class WriteBehind(_OpenImage):
    """An image to which ``write`` returns before all is written; whatever else is done to it waits for that."""

    def __init__(self, image: Any) -> None:
        super().__init__(image)
        self._size: int | None = None

    def write(self, data: bytes, offset: int, *flags: Any) -> int:
        if self._size is None:
            self._size = self.__wrapped__.size()
        if flags or type(data) is not bytes or offset + len(data) > self._size:
            # Bytes beyond the end are silently cut off by aio_write, and are an error of write.
            self._settle()
            return self.__wrapped__.write(data, offset, *flags)
        self._settle(min(BEHIND, max(1, BEHIND_BYTES // max(1, len(data)))) - 1)
        request = _Request(offset, len(data), data)
        request.completion = self.__wrapped__.aio_write(data, offset, request.done)
        self._under_way.append(request)
        return len(data)

    def _settle(self, left: int = 0) -> None:
        """Wait until no more than ``left`` writes are under way."""
        while len(self._under_way) > left:
            request = self._under_way[0]
            if request.wait() >= 0:
                _counts.moved(request.length)
            else:
                _counts.fell_back(Reason.REFUSED)
                # Raises the retry's error, or makes up for it. The first failure stays the first: where the driver
                # catches the error and tries its own write again, this one is tried again before, and is not lost.
                self.__wrapped__.write(request.data, request.offset)
            self._under_way.popleft().end()

    def __getattr__(self, name: str) -> Any:
        self._settle()
        self._size = None
        return super().__getattr__(name)


def _capable(image_class: Callable[[Any], Any], call: str) -> Callable[[Any], Any]:
    """``image_class`` of images that have ``call``, as all of Ceph's have since Luminous; others stay themselves."""

    def capable(image: Any) -> Any:
        if hasattr(image, call):
            return image_class(image)
        _counts.fell_back(Reason.REFUSED)
        return image

    return capable


def make_iter(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """``ImageIterator.__iter__`` with images that do not hold the hub."""
    return namespaces.replaced(wrapped, rbd=_with_images(_capable(GreenReads, "aio_read")))


class _Utils(Proxy):
    """The module ``glance_store.common.utils``, which cuts an image into chunks of another size."""

    def __init__(self, utils: Any, size: Callable[[int], int]) -> None:
        super().__init__(utils)
        self._size = size

    def chunkreadable(self, image_file: Any, chunk_size: int) -> Any:
        return self.__wrapped__.chunkreadable(image_file, self._size(chunk_size))


def make_add(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """``Store.add`` with images that are written behind, in chunks of ours.

    ``WRITE_CHUNKSIZE`` stays unchanged: the object size and the growth of images follow from it too.
    """
    images = _with_images(_capable(WriteBehind, "aio_write"))
    chunk = _stores.ChunkSize(STOCK_CHUNK, hook, "WRITE_CHUNKSIZE", "rbd", CHUNK, _OPTION)
    namespace = wrapped.__globals__

    def add(self: Any, *args: Any, **kwargs: Any) -> Any:
        def size(stock: int) -> int:
            # Without writes behind a small chunk would only be slower.
            writes_behind = hasattr(getattr(namespace["rbd"], "Image", None), "aio_write")
            return chunk.__get__(self) if writes_behind or _stores.explicit("rbd") is not None else stock

        call = namespaces.replaced(
            wrapped, rbd=images, utils=lambda utils: _Utils(utils, size), any=lambda _: sparse.any_set
        )
        return call(self, *args, **kwargs)

    return add


def make_configure_add(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Store.configure_add``: what it derives from the option stays derived from it."""

    def configure_add(self: Any) -> None:
        wrapped(self)
        _stores.restore_write_size(self)
        self.resize_amount = vars(self)["WRITE_CHUNKSIZE"]

    return configure_add


_OPTION = _stores.Option("rbd_store_chunk_size", MIB)

_CONFIGURE_ADD = _stores.CONFIGURE_ADD._replace(names=f"{_stores.CONFIGURE_ADD.names} resize_amount")


PATCH = Patch(
    __name__,
    summary="glance_store's rbd: chunks written behind, reads that do not hold the hub, chunk size",
    targets=(
        Target("glance_store._drivers.rbd:Store.configure_add", make_configure_add, _CONFIGURE_ADD),
        *_stores.chunk_sizes(
            "rbd",
            _OPTION,
            READ_CHUNKSIZE=_stores.Size(READ_CHUNK, STOCK_CHUNK),
        ),
        Target(
            "glance_store._drivers.rbd:ImageIterator.__iter__",
            make_iter,
            Uses("self", "yield rbd Image read"),
            {"__init__": Uses("self, *_", "chunk_size READ_CHUNKSIZE")},
        ),
        Target(
            "glance_store._drivers.rbd:Store.add",
            make_add,
            Uses("self, *_", "rbd Image utils chunkreadable WRITE_CHUNKSIZE any write"),
            {"_resize_on_write": Uses("self, image, image_size, bytes_written, chunk_length", "resize")},
        ),
    ),
)
