"""``s3_ranges``: glance_store's s3 driver reads a large image by several connections where one is slow.

Upstream reads an image from one connection, to which a service far away gives some 50 to 100 MB/s. With this patch,
``get()`` asks for the next parts of 8 MiB by up to 4 ranged requests, if the first 2 MiB came with less than 200 MB/s,
the reader waited for them, and the processor was idle. A part is of the same version of the object, by its ETag. If
one fails, the image comes from the first answer, which stays open. A reader has up to 40 MiB in memory; all of a
process together have 8 parts, and those that each cannot do without.

Differences: a service sees more requests, and a first answer that is broken off.
"""

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.concurrency import handover
from fastio.io import ahead
from fastio.patches.glance_store import _stores
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target
from fastio.proxy import Proxy

_counts = counters.of(__name__)


class _Client(Proxy):
    """A boto3 client whose answers are read ahead."""

    def get_object(self, **kwargs: Any) -> Any:
        answer = self.__wrapped__.get_object(**kwargs)
        if set(kwargs) == {"Bucket", "Key"} and _is_plain(answer):
            # The answer itself would be in a cycle, and its connection open until the next garbage collection.
            body, total, tag = answer["Body"], answer["ContentLength"], answer["ETag"]

            def ask(first: int, end: int) -> Any:
                part = self.__wrapped__.get_object(**kwargs, Range=f"bytes={first}-{end - 1}", IfMatch=tag)
                if part.get("ContentRange") != f"bytes {first}-{end - 1}/{total}" or part["ETag"] != tag:
                    part["Body"].close()
                    raise ValueError("not the part that was asked for")
                return part["Body"].read, part["Body"].close

            answer["Body"] = ahead.Ahead(body.read, body.close, total, ask, _counts)
        return answer


def _is_plain(answer: Any) -> bool:
    """Whether the content is all of a large object, and nothing but its bytes is read."""
    from botocore.response import StreamingBody

    tag, size = answer.get("ETag") or "", answer.get("ContentLength")
    # Another class verifies a checksum of the whole.
    plain = type(answer.get("Body")) is StreamingBody and not answer.get("ContentEncoding")
    return plain and tag.startswith('"') and type(size) is int and size > ahead.LEAST


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Store._operation_set``."""

    def _operation_set(self: Any, *args: Any, **kwargs: Any) -> Any:
        client, *rest = wrapped(self, *args, **kwargs)
        if handover.is_possible():
            client = _Client(client)
        return (client, *rest)

    return _operation_set


PATCH = Patch(
    __name__,
    summary="glance_store's s3: a large image comes by several connections where one is slow",
    changes="the service sees several requests for an image, and an answer that is broken off",
    targets=(
        Target(
            f"{_stores.CLASSES['s3']}._operation_set",
            make,
            Uses("self, loc", "_create_s3_client"),
            {"get": Uses("self, *_", "_operation_set get_object chunkiter")},
        ),
    ),
)
