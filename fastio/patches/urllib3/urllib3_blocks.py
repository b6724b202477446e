"""``urllib3_blocks``: urllib3 sends a body of known length in blocks of 1 MiB.

Upstream reads a file-like body in blocks of 16 KiB (urllib3 2) or 8 KiB (urllib3 1.26), and sends each by itself. With
this patch, the blocks are 1 MiB: uploads of requests, openstacksdk, openstackclient and swiftclient take fewer
calls. The bytes sent are the same.

This applies to regular files, to ``io.BytesIO``, and to the objects with which swiftclient and openstacksdk read a
file. Other objects may give only a little at times, which upstream sends at once.

Upstream's size remains if the program has set one (``blocksize``), and if the socket has a time-out: it is for each
block. Chunked bodies and those below 64 KiB stay unchanged, as does a connection whose ``send()`` is not
http.client's, or that prints what it sends (``debuglevel``).
"""

import sys
from typing import Any

from fastio import counters
from fastio.config import MIB
from fastio.counters import Reason
from fastio.patches.urllib3 import _requests
from fastio.patching.registry import Patch

_counts = counters.of(__name__)

#: Bytes of a block, as of those of ``store_swift``.
SIZE = MIB


def _stand_in(connection: Any, body: Any) -> Any:
    from fastio.io import uploads

    if connection.blocksize != _upstreams():
        return Reason.CONFIGURED
    return uploads.Enlarged(body, connection, SIZE, _counts) if uploads.is_at_hand(body) else Reason.INPUT


def _upstreams() -> int:
    """The size of a block unless a program sets one, in bytes: urllib3 1.26 leaves it to http.client."""
    return 16384 if hasattr(sys.modules["urllib3.connection"], "body_to_chunks") else 8192


PATCH = Patch(
    __name__,
    summary="urllib3: a body of known length is read and sent in blocks of 1 MiB",
    targets=(_requests.target(_stand_in, _counts),),
)
