"""``glance_sendfile``: the kernel sends an image from its file, without copying the bytes into the service (eventlet).

This applies to downloads that glance-api's own server sends, if the body is a file of the filesystem store or of the
image cache, and if only glance's own counting is between the file and the client. All but the first chunk is sent with
``sendfile()``. For a client on this host, which has the same address, it is written from a mapping of the file
(:mod:`fastio.io.mapped`). Upstream's code runs as before, but with pieces of the file in place of their bytes
(:mod:`fastio.io.file_pieces`). So size checks and notifications use what was really sent.

The bytes are read, as before, if other code has to see them: if another middleware wraps the body, over TLS, with
chunked encoding, and while the cache is filled. If ``sendfile()`` fails, the rest is read, so that an error is the one
that reading raises. A native thread first reads what is not in the page cache. Each download yields after its share of
``yield_bytes``. On native threads, the patch changes nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from fastio import counters
from fastio.concurrency import current
from fastio.concurrency.pace import Pace
from fastio.config import MIB
from fastio.counters import Reason
from fastio.io import file_pieces, mapped, paced
from fastio.patches import eventlet
from fastio.patches.eventlet import _wsgi
from fastio.patching.proxy import Proxy
from fastio.patching.registry import Layer, Patch, Target

_counts = counters.of(__name__)

#: The least that a download sends from a mapping in a turn, in bytes, unless ``yield_bytes`` is less: a whole piece.
#: With 256 KiB twenty downloads at a time were no faster than stock's, with 512 KiB 1.7, with a MiB 1.9 times as fast.
MAPPED_SHARE = MIB

#: What the connection fails with, and not the file.
_OF_CONNECTION = {
    errno.EPIPE, errno.ECONNRESET, errno.ECONNABORTED, errno.ENOTCONN, errno.ETIMEDOUT, errno.EBADF,
    errno.ESHUTDOWN, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN,
}  # fmt: skip

#: body of a response -> what it takes its chunks from
_sources: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


class Opened:
    """Where the file of a body will be found that opens it only when its first chunk is asked for."""

    def __init__(self) -> None:
        self.wanted: Callable[[file_pieces.PieceFile], Any] | None = None

    def tell(self, file: file_pieces.PieceFile) -> None:
        if self.wanted is not None:
            self.wanted(file)


def make_init(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """``ChunkedFile.__init__`` with a file that can be read in pieces."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        wrapped(self, *args, **kwargs)
        if current.is_green():
            self.fp = file_pieces.PieceFile(self.fp)

    return __init__


def make_get_chunk_data_iterator(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """``ImageProxy._get_chunk_data_iterator``, whose result is known for what it counts."""

    def _get_chunk_data_iterator(self: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
        body = wrapped(self, data, *args, **kwargs)
        if current.is_green():
            _sources[body] = data
        return body

    return _get_chunk_data_iterator


def make_get_from_cache(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """``CacheFilter.get_from_cache`` with a file that can be read in pieces."""

    def get_from_cache(self: Any, image_id: Any) -> Any:
        if not current.is_green():
            return wrapped(self, image_id)
        opened = Opened()
        body = wrapped(_CacheFilter(self, opened), image_id)
        _sources[body] = opened
        return body

    return get_from_cache


def make_process_v2_request(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """``CacheFilter._process_v2_request``, the body of whose result is known for what it counts."""

    def _process_v2_request(self: Any, request: Any, image_id: Any, image_iterator: Any, image_meta: Any) -> Any:
        response = wrapped(self, request, image_id, image_iterator, image_meta)
        if current.is_green():
            _sources[response.app_iter] = image_iterator
        return response

    return _process_v2_request


class _CacheFilter(Proxy):
    """Stands for the cache middleware, whose cache it is that a body opens its file from."""

    def __init__(self, wrapped: Any, opened: Opened) -> None:
        super().__init__(wrapped)
        self._opened = opened

    @property
    def cache(self) -> _CacheFilter:
        return _CacheFilter(self.__wrapped__.cache, self._opened)

    @contextlib.contextmanager
    def open_for_read(self, image_id: Any) -> Iterator[Any]:
        with self.__wrapped__.open_for_read(image_id) as file:
            pieces = file_pieces.PieceFile(file)
            self._opened.tell(pieces)
            yield pieces


def make_handle_one_response(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``HttpProtocol.handle_one_response``."""

    def respond(handler: Any, application: Callable[..., Any], environ: Any, start_response: Any) -> Any:
        response = _wsgi.Response(start_response)
        body = application(environ, start_response)
        if _source(body) is None:
            return body
        why_not = _why_not(handler, response) or (None if _start(body) else Reason.WRAPPED_BODY)
        if why_not is not None:
            _counts.fell_back(why_not)
            return body
        _counts.took()
        return Body(body, handler.connection, response)

    return _wsgi.handling(wrapped, respond)


def _why_not(handler: Any, response: _wsgi.Response) -> Reason | None:
    """Why a file cannot go to the client as it is: TLS, chunks, or something in between; None if it can."""
    connection = handler.connection
    if not _wsgi.is_plain(connection):
        return Reason.TLS if hasattr(connection, "getpeercert") else Reason.FOREIGN
    if not _wsgi.sends_unbuffered(handler):
        return Reason.FOREIGN
    if connection.act_non_blocking:
        return Reason.NON_BLOCKING
    unframed = not response.headers_sent and response.header("content-length") is not None
    return None if unframed else Reason.FRAMING


def _source(body: Any) -> Any:
    """What ``body`` takes its chunks from, if it is known; else None."""
    try:
        return _sources.get(body)
    except TypeError:
        return None


def _start(body: Any) -> bool:
    """Have ``body`` be of pieces, if the file that it takes its chunks from can be found."""
    found = body
    while (source := _source(found)) is not None:
        found = source
        while issubclass(type(found), paced.Fair):
            found = found.__wrapped__
    if type(found) is Opened:
        found.wanted = file_pieces.PieceFile.start
        return True
    file = None if found is body else getattr(found, "fp", None)
    return type(file) is file_pieces.PieceFile and file.start()


class Body:
    """What the server iterates over in place of ``body``: bytes are for the server to send, pieces are sent here."""

    def __init__(self, body: Any, connection: Any, response: _wsgi.Response) -> None:
        self._body = body
        self._connection = connection
        self._response = response
        self._local = _is_local(connection)
        self._pace = Pace(MAPPED_SHARE) if self._local else Pace()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._body, name)

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._body:
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
        """What counts chunks before they are sent has counted too many bytes."""
        if _source(self._body) is not None and hasattr(self._body, "bytes_written"):
            self._body.bytes_written -= left

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
                if error.errno in _OF_CONNECTION:
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
        arguments = (self._connection.fileno(), piece.file.fileno(), piece.position, count)
        piece.file.fetch(piece.position, piece.position + count)
        if self._local:
            with contextlib.suppress(mapped.NotMapped):
                return mapped.send(*arguments)
        return os.sendfile(*arguments)


def _is_local(connection: Any) -> bool:
    """Whether the client is on this host: both ends have the same address."""
    try:
        return connection.getpeername()[:1] == connection.getsockname()[:1]
    except OSError:
        return False


def _wait_for_room(connection: Any) -> None:
    """Upstream's own wait for room in the socket's buffer, with its time-out and what it raises."""
    refusals = iter((BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)),))

    def send(data: bytes) -> int:
        for refusal in refusals:
            raise refusal
        return 0

    connection._send_loop(send, b"")


#: What is done with a chunk, which may be a piece of the file here.
_CHUNKS_OF_FILE = """
    def __init__(self, *_):
        self.fp = open(self.filepath, 'rb')
    def __iter__(self):
        while True:
            if self.partial:
                size = min(self.chunk_size, self.partial_length)
            else:
                size = self.chunk_size
            chunk = self.fp.read(size)
            if chunk:
                yield chunk
                if self.partial:
                    self.partial_length -= len(chunk)
                    if self.partial_length <= 0:
                        break
            else:
                break
    def close(self):
        self.fp.close()
"""
_CHUNKS_OF_NOTIFIER = """
    def _get_chunk_data_iterator(self, data, *_):
        for chunk in data:
            yield chunk
            sent += len(chunk)
"""
_CHUNKS_OF_CACHE = """
    def get_from_cache(self, image_id):
        with self.cache.open_for_read(image_id) as cache_file:
            chunks = utils.chunkiter(cache_file)
            for chunk in chunks:
                yield chunk
"""
_CHUNKS_OF_RESPONSE = """
    def _process_v2_request(self, request, image_id, image_iterator, image_meta):
        return response
        response.app_iter = size_checked_iter(response, image_meta, image_meta['size'], image_iterator, _)
"""

PATCH = Patch(
    __name__,
    summary="glance under eventlet: images in files go to the client with sendfile(), without the copy through Python",
    changes="a client may get the new content of an image's file that somebody writes into while it is sent",
    layer=Layer.REPLACE,
    counted=False,
    after=("green_wsgi_chunked", "store_filesystem", "glance_cache"),
    targets=(
        Target("eventlet.wsgi:HttpProtocol.handle_one_response", make_handle_one_response),
        Target(
            "glance_store._drivers.filesystem:ChunkedFile.__init__", make_init, ("__iter__", "close"), _CHUNKS_OF_FILE
        ),
        Target(
            "glance.notifier:ImageProxy._get_chunk_data_iterator",
            make_get_chunk_data_iterator,
            contract=_CHUNKS_OF_NOTIFIER,
        ),
        Target(
            "glance.api.middleware.cache:CacheFilter.get_from_cache", make_get_from_cache, contract=_CHUNKS_OF_CACHE
        ),
        Target(
            "glance.api.middleware.cache:CacheFilter._process_v2_request",
            make_process_v2_request,
            # What it does with a chunk has to be known: from glance 32 on it is another thing than before.
            ("glance.api.common:size_checked_iter",),
            _CHUNKS_OF_RESPONSE,
        ),
    ),
    requires=(eventlet.REQUIRES,),
)
