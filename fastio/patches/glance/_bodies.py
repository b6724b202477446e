"""Bodies of glance's responses that are made from a file: which file, and how to have pieces of it for its bytes."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from fastio.io import file_pieces, paced
from fastio.patching.proxy import Proxy
from fastio.patching.registry import Make, Target

#: body of a response -> what it takes its chunks from
_sources: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

Use = Callable[[file_pieces.PieceFile], bool]


class Opened:
    """Where the file of a body will be found that opens it only when its first chunk is asked for."""

    def __init__(self) -> None:
        self.wanted: Use | None = None

    def tell(self, file: file_pieces.PieceFile) -> None:
        if self.wanted is not None:
            self.wanted(file)


def source(body: Any) -> Any:
    """What ``body`` takes its chunks from, if it is known; else None."""
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


#: What is done with a chunk, which may be a piece of the file here.
_CHUNKS_OF_FILE = """
    def __init__(self, *_):
        self.fp = open(self.filepath, 'rb')
    def __iter__(self):
        while True:
            if self.partial:
                size = min(self.chunk_size, self.partial_length)
            else:
                size = self.chunk_size
            chunk = self.fp.read(size)
            if chunk:
                yield chunk
                if self.partial:
                    self.partial_length -= len(chunk)
                    if self.partial_length <= 0:
                        break
            else:
                break
    def close(self):
        self.fp.close()
"""
_CHUNKS_OF_NOTIFIER = """
    def _get_chunk_data_iterator(self, data, *_):
        for chunk in data:
            yield chunk
            sent += len(chunk)
"""
_CHUNKS_OF_CACHE = """
    def get_from_cache(self, image_id):
        with self.cache.open_for_read(image_id) as cache_file:
            chunks = utils.chunkiter(cache_file)
            for chunk in chunks:
                yield chunk
"""
_CHUNKS_OF_RESPONSE = """
    def _process_v2_request(self, request, image_id, image_iterator, image_meta):
        return response
        response.app_iter = size_checked_iter(response, image_meta, image_meta['size'], image_iterator, _)
"""


def targets(applies: Callable[[], bool]) -> tuple[Target, ...]:
    """The functions by which a body comes to its file; they are upstream's own unless ``applies()``."""

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
            ("__iter__", "close"),
            _CHUNKS_OF_FILE,
        ),
        Target(
            "glance.notifier:ImageProxy._get_chunk_data_iterator",
            where_it_applies(make_get_chunk_data_iterator),
            contract=_CHUNKS_OF_NOTIFIER,
        ),
        Target(
            "glance.api.middleware.cache:CacheFilter.get_from_cache",
            where_it_applies(make_get_from_cache),
            contract=_CHUNKS_OF_CACHE,
        ),
        Target(
            "glance.api.middleware.cache:CacheFilter._process_v2_request",
            where_it_applies(make_process_v2_request),
            # What it does with a chunk has to be known: from glance 32 on it is another thing than before.
            ("glance.api.common:size_checked_iter",),
            _CHUNKS_OF_RESPONSE,
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
