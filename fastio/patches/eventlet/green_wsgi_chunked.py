"""``green_wsgi_chunked``: eventlet's WSGI server sends the chunks of a chunked response without copying them.

Upstream (seen in eventlet 0.30 to 0.41) joins the length, the chunk and the line end into a new bytes object. This
copies each chunk twice, and makes chunks of 4 MiB slower than chunks of 64 KiB. With this patch, one ``sendmsg()``
sends the three parts: the same bytes, in the same chunks. TLS has no such call. There, only the beginning of a large
chunk is copied, to fill one buffer together with the length.

The function that writes is local to ``handle_one_response()``, and the application's ``start_response`` refers to it
as well. The patch replaces it there, for one response at a time. Upstream's function sends the first chunk, together
with the headers, and anything that an application writes that is not ``bytes``. If a client times out, no part of a
chunk stays in a buffer, where it would be sent again when the connection is closed.
"""

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.counters import Reason
from fastio.patches.eventlet import _wsgi
from fastio.patching.registry import Layer, Patch, Target

_counts = counters.of(__name__)


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``HttpProtocol.handle_one_response``."""

    def respond(handler: Any, application: Callable[..., Any], environ: Any, start_response: Any) -> Any:
        upstreams = _wsgi.cells(start_response)["write"]
        upstreams.cell_contents = _make_write(upstreams.cell_contents, handler)
        return application(environ, start_response)

    return _wsgi.handling(wrapped, respond)


def _make_write(upstreams: Callable[[Any], None], handler: Any) -> Callable[[Any], None]:
    """``write`` of one response."""
    cells = _wsgi.cells(upstreams)
    #: upstream's variables of the response, each in a list of one
    use_chunked, length = cells["use_chunked"].cell_contents, cells["length"].cell_contents
    wfile = handler.wfile
    connection = handler.connection
    if not _wsgi.sends_unbuffered(handler):
        _counts.fell_back(Reason.FOREIGN)
        return upstreams
    plain = _wsgi.is_plain(connection)
    wfile_size = handler.wbufsize

    def write(data: Any) -> None:
        if not use_chunked[0] or not data or wfile.closed:
            upstreams(data)
            return
        if type(data) is not bytes or connection.act_non_blocking:
            _counts.fell_back(Reason.INPUT if type(data) is not bytes else Reason.NON_BLOCKING)
            upstreams(data)
            return
        head, tail = b"%x\r\n" % len(data), b"\r\n"
        if plain:
            wfile.flush()
            _send(connection, [head, data, tail])
        else:
            # As much as fills the buffer: one record, where the length alone would be a small one of its own.
            beginning = max(0, wfile_size - len(head))
            wfile.writelines((head + data[:beginning], memoryview(data)[beginning:], tail))
            wfile.flush()
        _counts.calls += 1
        _counts.bytes += len(data)
        length[0] += len(head) + len(data) + len(tail)

    # Other patches look for upstream's variables, too.
    write.__wrapped__ = upstreams  # type: ignore[attr-defined]
    return write


def _send(connection: Any, parts: list[Any]) -> None:
    """Send all of ``parts``, one after the other."""
    while parts:
        try:
            count = connection.fd.sendmsg(parts)
        except BlockingIOError:
            counters.io.waits += 1
            # It waits for room, with the connection's time-out.
            count = connection.send(parts[0])
        counters.io.writes += 1
        counters.io.bytes_out += count
        while parts and count >= len(parts[0]):
            count -= len(parts.pop(0))
        if count:
            parts[0] = memoryview(parts[0])[count:]


PATCH = Patch(
    __name__,
    summary="eventlet: the WSGI server sends the chunks of a chunked response without copying them",
    changes="after a client's time-out, the rest of a chunk is not sent again when the connection is closed",
    layer=Layer.REPLACE,
    counted=False,
    targets=(Target("eventlet.wsgi:HttpProtocol.handle_one_response", make),),
)
