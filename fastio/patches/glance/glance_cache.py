"""``glance_cache``: the image cache reads in large chunks, hashes and writes in native threads, and is fair.

Upstream reads a cached image in chunks of 64 KiB, from the first to the last, and lets no other request run. With this
patch, a chunk is ``chunk_size``, and under eventlet a request yields after its share of ``yield_bytes``. An image may
be copied to the cache while a client downloads it. It is then hashed (md5) in a native thread, in parallel with the
download. Under eventlet a native thread also writes it. Upstream does both in the hub's thread, and blocks all other
requests in the meantime.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from fastio import config, counters
from fastio.io import hashing, hashing_pool, image_files, paced
from fastio.patching import namespaces
from fastio.patching.proxy import Proxy
from fastio.patching.registry import Layer, Patch, Target

_counts = counters.of(__name__)


def make_get_from_cache(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """``CacheFilter.get_from_cache`` with large chunks of a file that leaves the hub to others."""
    return namespaces.replaced(wrapped, utils=_Utils)


class _Utils(Proxy):
    """``glance.common.utils`` with another default of ``chunkiter``."""

    def chunkiter(self, file: Any) -> Any:
        return paced.wrap(self.__wrapped__.chunkiter(image_files.wrap(file, _counts), config.effective().chunk_size))


def make_cache_tee_iter(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """``ImageCache.cache_tee_iter`` that hashes in a native thread, and under eventlet writes in one."""
    hashed = namespaces.replaced(wrapped, hashlib=_Hashlib, md5=_in_background)

    def cache_tee_iter(self: Any, *args: Any, **kwargs: Any) -> Any:
        return hashed(_Cache(self), *args, **kwargs)

    return cache_tee_iter


def _in_background(md5: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: hashing.BackgroundHash(md5(*args, **kwargs), hashing_pool.pool, _counts)


class _Hashlib(Proxy):
    """``hashlib`` whose md5 works in the background."""

    @property
    def md5(self) -> Callable[..., Any]:
        return _in_background(self.__wrapped__.md5)


class _Cache(Proxy):
    """Stands for the cache, or its driver, the files of which are written without holding the hub."""

    @property
    def driver(self) -> _Cache:
        return _Cache(self.__wrapped__.driver)

    @contextlib.contextmanager
    def open_for_write(self, image_id: Any) -> Iterator[Any]:
        with self.__wrapped__.open_for_write(image_id) as file:
            yield image_files.wrap(file)


PATCH = Patch(
    __name__,
    summary="glance's image cache: large chunks, hashed and written next to sending, fair under eventlet",
    layer=Layer.REPLACE,
    targets=(
        Target(
            "glance.api.middleware.cache:CacheFilter.get_from_cache",
            make_get_from_cache,
            contract="""
                def get_from_cache(self, image_id):
                    yield chunk
                    utils.chunkiter(cache_file)
            """,
        ),
        Target(
            "glance.image_cache:ImageCache.cache_tee_iter",
            make_cache_tee_iter,
            contract="""
                def cache_tee_iter(self, *_):
                    yield chunk
                    self.driver.open_for_write(image_id)
                    cache_file.write(chunk)
                    current_checksum.update(chunk)
                    current_checksum.hexdigest()
            """,
        ),
    ),
)
