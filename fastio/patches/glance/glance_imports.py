"""``glance_imports``: an image that is imported is hashed once, not once for the staging area and for each store.

Upstream hashes what it writes to the staging area with md5, twice, and uses neither digest. Then it reads that file for
one store after the other, and computes md5 and the multihash of each copy. With this patch, each digest is computed in
the first pass that asks for it. The passes after that only check that the data is still the same, by tags of each 4 MiB
under a secret key of the process, which takes a small part of the time; see :mod:`fastio.io.hashing_once`. If a plugin
or anything else has changed the file in between, all of it is hashed from the first difference on. The digests are
those of each store's data, and stores fail, and are retried, like upstream's.

The hash of an image whose location is added is computed by threads, in parallel with reading the image.
"""

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.io import hashing, hashing_once
from fastio.io.hashing import pool
from fastio.patching import namespaces
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target
from fastio.proxy import Proxy

_counts = counters.of(__name__)


def make_pass(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of what writes an image to the staging area, or from there to a store."""

    def one_pass(*args: Any, **kwargs: Any) -> Any:
        _counts.took()
        with hashing_once.one_pass(_counts):
            return wrapped(*args, **kwargs)

    return one_pass


class _Hashlib(Proxy):
    """``hashlib`` whose hash objects leave their work to threads."""

    def __getattr__(self, name: str) -> Any:
        make = super().__getattr__(name)

        def made(*args: Any, **kwargs: Any) -> Any:
            _counts.took()
            return hashing.BackgroundHash(make(*args, **kwargs), pool, _counts)

        return made


def make_calculate_hash(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """``_CalculateHash._calculate_hash`` with other hash objects."""
    return namespaces.replaced(wrapped, hashlib=_Hashlib)


_FLOWS = "glance.async_.flows"

PATCH = Patch(
    __name__,
    summary="glance's imports: one pass of md5 and of the multihash for the staging area and all stores",
    targets=(
        Target(
            f"{_FLOWS}.api_image_import:_ImportToStore.execute",
            make_pass,
            Uses("self, file_path=None", "_execute"),
            {"_execute": Uses("self, action, file_path", "set_image_data")},
        ),
        Target(
            f"{_FLOWS}.parallel_api_image_import:_import_staged_data_to_store",
            make_pass,
            Uses("*_", "store_api add_with_multihash"),
        ),
        Target(
            f"{_FLOWS}._internal_plugins.web_download:_WebDownload.execute",
            make_pass,
            Uses("self", "store add image_id"),
        ),
        Target(
            f"{_FLOWS}._internal_plugins.glance_download:_DownloadGlanceImage.execute",
            make_pass,
            Uses("self, image_size", "store add image_id"),
        ),
        Target(
            f"{_FLOWS}._internal_plugins.copy_image:_CopyImage._copy_to_staging_store",
            make_pass,
            Uses("self, loc", "staging_store add image_id"),
        ),
        Target(
            "glance.api.v2.image_data:ImageDataController.stage",
            make_pass,
            Uses("self, req, image_id, data, size", "staging_store add"),
        ),
        Target(
            f"{_FLOWS}.location_import:_CalculateHash._calculate_hash",
            make_calculate_hash,
            Uses("self, image", "hashlib new hashing_algo update hexdigest"),
        ),
    ),
)
