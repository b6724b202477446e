"""``glance_sendfile``: the kernel sends an image from its file, without copying the bytes into the service (eventlet).

This applies to downloads that glance-api's own server sends, if the body is a file of the filesystem store or of the
image cache, and if only glance's own counting is between the file and the client. All but the first chunk is sent with
``sendfile()``. For a client on this host, which has the same address, it is written from a mapping of the file
(:mod:`fastio.io.mapped`). Upstream's code runs as before, but with pieces of the file in place of their bytes
(:mod:`fastio.io.file_pieces`). Size checks and notifications use the number of bytes that were really sent.

The bytes are read, as before, if other code has to see them: if another middleware wraps the body, over TLS, with
chunked encoding, and while the cache is filled. If ``sendfile()`` fails, the rest is read, so that an error is the one
that reading raises. A native thread first reads what is not in the page cache. Each download yields after its share of
``yield_bytes``. On native threads, the patch changes nothing.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from typing import Any

from fastio import counters
from fastio.concurrency import current
from fastio.concurrency.pace import Pace
from fastio.counters import Cause, Reason
from fastio.io import file_pieces, file_sending
from fastio.patches import eventlet
from fastio.patches.eventlet import _wsgi
from fastio.patches.glance import _bodies, _uwsgi
from fastio.patching.registry import Patch, Target
from fastio.proxy import Proxy

_counts = counters.of(__name__)


def make_handle_one_response(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``HttpProtocol.handle_one_response``."""

    def respond(handler: Any, application: Callable[..., Any], environ: Any, start_response: Any) -> Any:
        response = _wsgi.Response(start_response)
        body = application(environ, start_response)
        if _bodies.source(body) is None:
            return body
        why_not = _why_not(handler, response) or (None if _bodies.start(body) else Reason.WRAPPED_BODY)
        if why_not is not None:
            _counts.fell_back(why_not)
            return body
        _counts.took()
        return Body(body, handler.connection, response)

    return _wsgi.handling(wrapped, respond)


def _why_not(handler: Any, response: _wsgi.Response) -> Cause | None:
    """Return why a file cannot go to the client unchanged: TLS, chunks, or something in between; None if it can."""
    connection = handler.connection
    if not _wsgi.is_plain(connection):
        return Reason.TLS if hasattr(connection, "getpeercert") else Reason.FOREIGN
    if not _wsgi.sends_unbuffered(handler):
        return Reason.FOREIGN
    if connection.act_non_blocking:
        return Reason.NON_BLOCKING
    unframed = not response.headers_sent and response.header("content-length") is not None
    return None if unframed else Reason.FRAMING


class Body(Proxy):
    """Iterate in place of ``body``: bytes are for the server to send, pieces are sent here."""

    def __init__(self, body: Any, connection: Any, response: _wsgi.Response) -> None:
        super().__init__(body)
        self._connection = connection
        self._response = response
        self._local = file_sending.is_local(connection)
        self._pace = Pace()

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self.__wrapped__:
            if type(chunk) is not file_pieces.Piece:
                yield chunk
                continue
            if self._response.headers_sent:
                self._send(chunk)
            chunk.ended = True
            if chunk.left:
                chunk.file.stop()
                self._uncount(chunk.left)

    def _uncount(self, left: int) -> None:
        """Correct the counters of sent bytes, which count chunks before they are sent."""
        if _bodies.source(self.__wrapped__) is not None and hasattr(self.__wrapped__, "bytes_written"):
            self.__wrapped__.bytes_written -= left

    def _send(self, piece: file_pieces.Piece) -> None:
        """Send ``piece``, or as much of it as there is in the file and can be sent without reading it."""
        while piece.left:
            self._pace.yield_when_due()
            try:
                sent = self._send_some(piece, min(piece.left, self._pace.left))
            except BlockingIOError:
                counters.io.waits += 1
                _wait_for_room(self._connection)
                # Others have run meanwhile, and its share begins anew.
                self._pace.renew()
                continue
            except OSError as error:
                if file_sending.is_of_connection(error, piece.file.fileno(), piece.position):
                    raise
                return
            if not sent:
                return
            piece.sent += sent
            self._pace.moved(sent)
            self._response.count(sent)
            counters.io.writes += 1
            counters.io.bytes_out += sent
            _counts.moved(sent)

    def _send_some(self, piece: file_pieces.Piece, count: int) -> int:
        piece.file.fetch(piece.position, piece.position + count)
        return file_sending.send(
            self._connection.fileno(), piece.file.fileno(), piece.position, count, mapping=self._local
        )


def _wait_for_room(connection: Any) -> None:
    """Upstream's own wait for room in the socket's buffer, with its time-out and what it raises."""
    refusals = iter((BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)),))

    def send(data: bytes) -> int:
        for refusal in refusals:
            raise refusal
        return 0

    connection._send_loop(send, b"")


PATCH = Patch(
    __name__,
    summary="glance under eventlet: images in files go to the client with sendfile(), without the copy through Python",
    changes="a client may get the new content of an image's file that is written to while it is sent",
    targets=(
        Target("eventlet.wsgi:HttpProtocol.handle_one_response", make_handle_one_response),
        *_bodies.targets(current.is_green),
    ),
    requires=(eventlet.REQUIRES,),
    unused=lambda: "the server is uWSGI" if _uwsgi.serves() else "",
)
