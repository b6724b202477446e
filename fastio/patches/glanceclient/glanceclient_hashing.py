"""``glanceclient_hashing``: glanceclient verifies a download in parallel with receiving it.

Upstream hashes each chunk (sha512, or md5 for old images) in the thread that reads and writes, between one chunk and
the next. With a fast server, this takes nearly all of a download's time. With this patch, the native threads of
``image_hashing`` hash the chunks; see :mod:`fastio.io.hashing`. Under eventlet the hub is free in the meantime. The
check comes where upstream has it, after the last chunk, with the same exception. At most 4 MiB wait to be hashed, and
less if there are many downloads.
"""

import errno
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fastio import counters
from fastio.io.hashing import BackgroundHash, pool
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target

_counts = counters.of(__name__)


def make_serious(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``serious_integrity_iter``, which is given its hash object."""

    def serious_integrity_iter(iter: Iterable[Any], hasher: Any, hash_value: Any) -> Any:
        _counts.took()
        return wrapped(iter, BackgroundHash(hasher, pool, _counts), hash_value)

    return serious_integrity_iter


def make_md5(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The replacement of ``integrity_iter``, which makes its own."""

    def integrity_iter(iter: Iterable[Any], checksum: Any) -> Iterator[Any]:
        import hashlib

        try:
            hasher = BackgroundHash(hashlib.new("md5"), pool, _counts)
        except ValueError:
            # Where md5 is forbidden upstream has its own words for it.
            yield from wrapped(iter, checksum)
            return
        _counts.took()
        for chunk in iter:
            yield chunk
            hasher.update(chunk.encode("latin-1") if isinstance(chunk, str) else chunk)
        found = hasher.hexdigest()
        if found != checksum:
            message = f"Corrupt image download. Checksum was {found} expected {checksum}"
            raise OSError(errno.EPIPE, message)

    return integrity_iter


PATCH = Patch(
    __name__,
    summary="glanceclient: what is downloaded is verified in native threads, next to receiving it",
    targets=(
        Target(
            "glanceclient.common.utils:serious_integrity_iter",
            make_serious,
            Uses("iter, hasher, hash_value", "yield update hexdigest"),
        ),
        Target("glanceclient.common.utils:integrity_iter", make_md5),
    ),
)
