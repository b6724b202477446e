"""``openstacksdk_hashing``: openstacksdk verifies an image in parallel with receiving it.

Upstream hashes each chunk (sha512, or md5 for old images) in the thread that reads and writes. With a fast server, this
takes nearly all of a download's time. With this patch, the native threads of ``image_hashing`` hash the chunks; see
:mod:`fastio.io.hashing`. Under eventlet the hub is free in the meantime. The check comes where upstream has it, after
the last chunk, with the same exception. At most 4 MiB wait to be hashed, and less if there are many downloads.

Releases before 4.9 have no separate function for it, and there upstream's code hashes.
"""

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.io.hashing import BackgroundHash, pool
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target

_counts = counters.of(__name__)


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``_integrity_iter``, which is given its hash object."""

    def _integrity_iter(iterable: Any, hasher: Any, *args: Any, **kwargs: Any) -> Any:
        _counts.took()
        return wrapped(iterable, BackgroundHash(hasher, pool, _counts), *args, **kwargs)

    return _integrity_iter


PATCH = Patch(
    __name__,
    summary="openstacksdk: an image that is downloaded is verified in native threads, next to receiving it",
    not_needed_in=("openstacksdk < 4.9",),
    targets=(
        Target(
            "openstack.image._download:_integrity_iter",
            make,
            Uses("iterable, hasher, expected_hash, hash_algo", "yield update _verify_checksum"),
        ),
    ),
)
