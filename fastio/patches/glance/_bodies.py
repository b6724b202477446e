"""Bodies of glance's responses: which file they are made from, and how to have pieces of it for its bytes.

The body of an image that is no file comes in chunks from a driver of glance_store. A relay between the two lets another
thread take the chunks from the driver, while glance's own code waits for the number of bytes.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from fastio.io import file_pieces, paced
from fastio.patches.glance_store import _stores
from fastio.patching.known_code import KNOWN, Uses
from fastio.patching.registry import Make, Target
from fastio.proxy import Proxy

#: body of a response -> what it takes its chunks from
_sources: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

Use = Callable[[file_pieces.PieceFile], bool]

#: Drivers whose chunks any thread may ask for, by their types in ``enabled_backends``, and their modules. They read
#: HTTP or call librbd, which both do not care for the thread, and look at nothing that belongs to one.
RELAYED = {name: _stores.CLASSES[name].partition(":")[0] for name in ("http", "swift", "s3", "rbd", "vmware")}
_RELAYED = frozenset(RELAYED.values())


class Opened:
    """Where the file of a body will be found that opens it only when its first chunk is asked for."""

    def __init__(self) -> None:
        self.wanted: Use | None = None

    def tell(self, file: file_pieces.PieceFile) -> None:
        if self.wanted is not None:
            self.wanted(file)


class Relay:
    """Stands for the data of an image, whose chunks another thread may take in the place of glance's own code.

    Only one takes a chunk at any moment: the consumer changes where no chunk is being taken.
    """

    def __init__(self, data: Any) -> None:
        self._data = data
        self._chunks: Iterator[Any] | None = None
        self._is_told = False
        self._taken = 0
        self._failure: BaseException | None = None

    def __iter__(self) -> Relay:
        self._chunks = iter(self._data)
        return self

    def __next__(self) -> Any:
        if not self._is_told:
            return self.take()
        if self._taken:
            taken, self._taken = self._taken, 0
            # glance asks for the length only.
            return range(taken)
        failure, self._failure = self._failure, None
        raise StopIteration if failure is None else failure

    def take(self) -> Any:
        """The next chunk.

        :raises StopIteration: there is none
        """
        assert self._chunks is not None
        return next(self._chunks)

    def tell(self, taken: int, failure: BaseException | None) -> None:
        """Have glance's code get this many bytes more, or rather their length, and then the end or the error."""
        self._is_told, self._taken, self._failure = True, taken, failure

    def close(self) -> None:
        """Forget the data, which ends it unless it has other references, as when glance's own code forgets it."""
        self._is_told = True
        self._data = self._chunks = self._failure = None


def relay(body: Any) -> Relay | None:
    """The relay that ``body`` takes its chunks from, if it has one."""
    found = source(body)
    return found if type(found) is Relay else None


def source(body: Any) -> Any:
    """Return the source of ``body``'s chunks, if it is known; else None."""
    try:
        return _sources.get(body)
    except TypeError:
        return None


def start(body: Any, use: Use = file_pieces.PieceFile.start) -> bool:
    """Have ``body`` be of pieces, if the file that it takes its chunks from can be found.

    :param use: is given the file, at once or when it is opened; returns whether it will do
    """
    found = body
    while (taken_from := source(found)) is not None:
        found = taken_from
        while issubclass(type(found), paced.Fair):
            found = found.__wrapped__
    if type(found) is Opened:
        found.wanted = use
        return True
    file = None if found is body else getattr(found, "fp", None)
    return type(file) is file_pieces.PieceFile and use(file)


class _CacheFilter(Proxy):
    """Stands for the cache middleware, whose cache it is that a body opens its file from."""

    def __init__(self, wrapped: Any, opened: Opened) -> None:
        super().__init__(wrapped)
        self._opened = opened

    @property
    def cache(self) -> _CacheFilter:
        return _CacheFilter(self.__wrapped__.cache, self._opened)

    @contextlib.contextmanager
    def open_for_read(self, image_id: Any) -> Iterator[Any]:
        with self.__wrapped__.open_for_read(image_id) as file:
            pieces = file_pieces.PieceFile(file)
            self._opened.tell(pieces)
            yield pieces


def targets(applies: Callable[[], bool], relays: bool = False) -> tuple[Target, ...]:
    """The functions by which a body comes to its file; they are upstream's own unless ``applies()``.

    :param relays: whether there are relays in bodies that come from no file
    """

    def where_it_applies(make: Make) -> Make:
        @functools.wraps(make)
        def made(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
            ours = make(wrapped, hook)

            def either(*args: Any, **kwargs: Any) -> Any:
                return (ours if applies() else wrapped)(*args, **kwargs)

            return either

        return made

    return (
        Target(
            "glance_store._drivers.filesystem:ChunkedFile.__init__",
            where_it_applies(make_init),
            Uses("self, *_", "fp open filepath"),
            # Each use of a chunk has to be known, here and below: it is no data, but stands for data.
            {"__iter__": KNOWN, "close": Uses("self", "fp close")},
        ),
        Target(
            "glance.notifier:ImageProxy._get_chunk_data_iterator",
            where_it_applies(make_relayed_chunk_data_iterator if relays else make_get_chunk_data_iterator),
        ),
        Target(
            "glance.api.middleware.cache:CacheFilter.get_from_cache",
            where_it_applies(make_get_from_cache),
        ),
        Target(
            "glance.api.middleware.cache:CacheFilter._process_v2_request",
            where_it_applies(make_process_v2_request),
            Uses("self, request, image_id, image_iterator, image_meta", "app_iter size_checked_iter"),
            # From glance 32 on it does another thing with a chunk than before.
            {"glance.api.common:size_checked_iter": KNOWN},
        ),
    )


def make_init(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """``ChunkedFile.__init__`` with a file that can be read in pieces."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        wrapped(self, *args, **kwargs)
        self.fp = file_pieces.PieceFile(self.fp)

    return __init__


def make_get_chunk_data_iterator(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """``ImageProxy._get_chunk_data_iterator``, whose result is known for what it counts."""

    def _get_chunk_data_iterator(self: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
        body = wrapped(self, data, *args, **kwargs)
        _sources[body] = data
        return body

    return _get_chunk_data_iterator


def make_relayed_chunk_data_iterator(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The same, which gets its chunks from a relay where those of the store may be taken by any thread."""
    known = make_get_chunk_data_iterator(wrapped, hook)

    def _get_chunk_data_iterator(self: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
        # A proxy of the data, such as a trace's, has its class.
        relayed = getattr(data.__class__, "__module__", None) in _RELAYED
        return known(self, Relay(data) if relayed else data, *args, **kwargs)

    return _get_chunk_data_iterator


def make_get_from_cache(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """``CacheFilter.get_from_cache`` with a file that can be read in pieces."""

    def get_from_cache(self: Any, image_id: Any) -> Any:
        opened = Opened()
        body = wrapped(_CacheFilter(self, opened), image_id)
        _sources[body] = opened
        return body

    return get_from_cache


def make_process_v2_request(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """``CacheFilter._process_v2_request``, the body of whose result is known for what it counts."""

    def _process_v2_request(self: Any, request: Any, image_id: Any, image_iterator: Any, image_meta: Any) -> Any:
        response = wrapped(self, request, image_id, image_iterator, image_meta)
        _sources[response.app_iter] = image_iterator
        return response

    return _process_v2_request
