"""``s3_singlepart``: an image that glance_store's s3 driver uploads in one piece is joined in linear time.

Upstream adds each chunk to an immutable bytes object, and so copies everything that it has each time. This applies to
every image below ``s3_store_large_object_size``, and to every image of unknown size.
"""

import io
import sys
from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.patching.registry import Patch, Target

_counts = counters.of(__name__)

_MODULE = "glance_store._drivers.s3"


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The replacement of ``Store._add_singlepart``: upstream's, but for what the image is collected in."""

    def _add_singlepart(
        self: Any,
        s3_client: Any,
        image_file: Any,
        bucket: str,
        key: str,
        loc: Any,
        hashing_algo: str,
        verifier: Any,
        image_size: int = 0,
    ) -> tuple[str, int, str, str, dict[str, Any]]:
        # Before 5.0 there is no image_size, and no look at it.
        upstream: Any = sys.modules[_MODULE]
        multihash = upstream.utils.get_hasher(hashing_algo, False)
        checksum = upstream.utils.get_hasher("md5", False)
        # It grows in place and hands its bytes over: they are in memory once.
        image_data = io.BytesIO()
        total_bytes = 0
        for chunk in upstream.utils.chunkreadable(image_file, self.WRITE_CHUNKSIZE):
            total_bytes += len(chunk)
            if image_size != 0 and total_bytes > image_size:
                raise _wrong_size(upstream, "Size exceeds", image_size, total_bytes)
            # The sum is the chunk itself, or upstream's TypeError where it is none.
            image_data.write(b"" + chunk)
            multihash.update(chunk)
            checksum.update(chunk)
            if verifier:
                verifier.update(chunk)
        if image_size != 0 and total_bytes != image_size:
            raise _wrong_size(upstream, "Size mismatch", image_size, total_bytes)
        _counts.calls += 1
        _counts.bytes += total_bytes
        s3_client.put_object(Body=image_data.getvalue(), Bucket=bucket, Key=key)
        hash_hex = multihash.hexdigest()
        checksum_hex = checksum.hexdigest()
        metadata = {"store": self.backend_group} if self.backend_group else {}
        upstream.LOG.debug(
            "Wrote %(size)d bytes to S3 key named %(key)s with checksum %(checksum)s",
            {"size": total_bytes, "key": key, "checksum": checksum_hex},
        )
        return loc.get_uri(), total_bytes, checksum_hex, hash_hex, metadata

    return _add_singlepart


def _wrong_size(upstream: Any, what: str, expected: int, actual: int) -> Exception:
    message = upstream._(what + ": expected %(expected)d bytes, got %(actual)d bytes")
    return upstream.glance_store.Invalid(message % {"expected": expected, "actual": actual})


PATCH = Patch(
    __name__,
    summary="glance_store's s3: uploads in one piece no longer copy the image once per chunk",
    targets=(Target("glance_store._drivers.s3:Store._add_singlepart", make),),
)
