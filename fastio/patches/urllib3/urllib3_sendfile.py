"""``urllib3_sendfile``: the kernel sends a file that is the body of a request, without copying it into the process.

This applies to a regular file that is opened for reading only, in binary mode, and goes over HTTP without TLS and
without a tunnel: to ``requests.put(url, data=file)``, ``openstack object create``, and uploads of openstacksdk. A file
that can be written may have changes in its buffer, so upstream's code reads it. All but the first block is
sent with ``sendfile()``. To a server on this host, which has the same address, it is written from a mapping of the file
(:mod:`fastio.io.mapped`). The bytes on the wire, the position in the file, time-outs and errors are upstream's. If
the socket has no room, upstream's code sends a block of upstream's size and waits as long as it ever does.

Under eventlet, nothing waits either. Each upload yields after its share of ``yield_bytes``, and a native thread first
reads what is not in the page cache.

Upstream's code reads chunked bodies, those below 64 KiB, and every other object that has a ``read()``. It also reads
what goes through a connection whose ``send()`` is not http.client's, or that prints what it sends (``debuglevel``). If
``sendfile()`` fails because of the file, the rest is read, so that an error is the one that reading raises.
"""

from typing import Any

from fastio import counters
from fastio.counters import Reason
from fastio.patches.urllib3 import _requests
from fastio.patching.registry import Patch

_counts = counters.of(__name__)


def _stand_in(connection: Any, body: Any) -> Any:
    from fastio.io import uploads

    if getattr(connection, "_tunnel_host", None):
        return Reason.FOREIGN
    can_be_sent = uploads.is_file(body) and uploads.is_only_read(body)
    return uploads.Sent(body, connection, _counts) if can_be_sent else Reason.INPUT


PATCH = Patch(
    __name__,
    summary="urllib3: a file that is uploaded goes to the server with sendfile(), without the copy through Python",
    changes="a server may get the new content of a file that is written to while it is sent, and audit hooks "
    "(http.client.send) do not see the bytes",
    targets=(_requests.target(_stand_in, _counts),),
)
