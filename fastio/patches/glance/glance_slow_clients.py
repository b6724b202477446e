"""``glance_slow_clients``: downloads do not hold the workers of uWSGI while their clients read.

glance 33 has no own server. Under uWSGI, a worker that sends an image answers no other client until this one has read
it. With this patch, a worker sends the headers and gives the transfer away, to the threads of its process that send
images to all its clients (:mod:`fastio.io.transfers`). For uWSGI the request is over then.

An image in a file is sent from there. The chunks of other stores go through a buffer of limited size, and are asked for
in a thread that has the request's context. Data that are not in memory are read by threads of their file system. A file
system that does not answer keeps no image of another one waiting. uWSGI's ``harakiri`` is how long a file system may
give nothing.

glance's work at the end of a body is done when the transfer has ended, and with the bytes that were really sent:
upstream's code is then given pieces of the file in place of their bytes (:mod:`fastio.io.file_pieces`), or the length
of the chunks, and an error is the one that reading raises. A worker that uWSGI's master ends finishes its transfers
within the master's mercy. Without a master, they end with it, like upstream's requests.

A body that other code has to see, an answer without ``Content-Length``, TLS, a server or an option of it that is not
known, a store whose chunks not every thread may ask for, more transfers than the setting ``transfers`` allows, and a
file system whose threads are all stuck: all these are upstream's.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from fastio import config, counters, log
from fastio.counters import Cause, Reason
from fastio.io import file_pieces
from fastio.io.transfers import ChunkTransfer, FileTransfer, Transfer, sender
from fastio.patches.glance import _bodies, _uwsgi
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target
from fastio.proxy import Proxy

_counts = counters.of(__name__)

#: Bytes of an image that are read before its headers are sent, so that what cannot be read is upstream's to tell.
FIRST = 64 * config.KIB
#: Bytes of memory that the transfers of a process may take together, for each of the setting ``transfers``.
_MEMORY = 512 * config.KIB


def make_init_app(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """``init_app``, whose application gives transfers away."""

    def init_app(*args: Any, **kwargs: Any) -> Any:
        return Application(wrapped(*args, **kwargs), hook)

    return init_app


def make_drain_workers(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """``drain_workers``, which uWSGI calls as a worker ends: transfers go on until they have ended, too."""

    def drain_workers(*args: Any, **kwargs: Any) -> Any:
        try:
            return wrapped(*args, **kwargs)
        finally:
            if _uwsgi.has_master():
                sender.wait()

    return drain_workers


class Application(Proxy):
    """glance's application."""

    def __init__(self, wrapped: Any, hook: Any) -> None:
        super().__init__(wrapped)
        self._hook = hook

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        application = self.__wrapped__
        if not self._hook.active or environ["REQUEST_METHOD"] != "GET" or _uwsgi.why_not():
            return application(environ, start_response)
        # The server empties its own as the request ends, and glance looks at it as the transfer does.
        environ = dict(environ)
        # glance's own code changes the path.
        request = f"GET {environ.get('PATH_INFO', '')}"
        answer = Answer(start_response)
        body = application(environ, answer)
        if _bodies.source(body) is None:
            return body
        # The server is not Python. Between it and this there may be code that has to see each byte.
        direct = sys._getframe().f_back is None
        if answer.part is None:
            why_not = Reason.FRAMING
        else:
            download = Download(body, answer.part, request)
            if direct and (download.relay(_bodies.relay(body)) or _bodies.start(body, download.use)):
                return download
            why_not = Reason.WRAPPED_BODY
        _counts.fell_back(why_not)
        return body


class Part(NamedTuple):
    """The part of an image that was announced to the client."""

    begin: int
    length: int
    whole: bool


class Answer:
    """The server's ``start_response``, and what it was given."""

    def __init__(self, start_response: Callable[..., Any]) -> None:
        self._start_response = start_response
        #: None if it is not announced to the client
        self.part: Part | None = None

    def __call__(self, status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
        named = {name.lower(): value for name, value in headers}
        whole = status.startswith("200")
        range = "bytes 0-" if whole else named.get("content-range", "") if status.startswith("206") else ""
        begin = re.match(r"bytes (\d+)-", range)
        length = named.get("content-length", "")
        if begin and length.isdecimal() and "transfer-encoding" not in named:
            self.part = Part(int(begin[1]), int(length), whole)
        return self._start_response(status, headers, *more)


class Download(Proxy):
    """The body that the server is given: empty, if the transfer can be given away; else upstream's."""

    def __init__(self, body: Any, part: Part, request: str) -> None:
        super().__init__(body)
        self._part = part
        self._request = request
        self._chunks = self._iterate()
        self._source: _File | _Store | None = None
        self._given = False
        self._began = time.monotonic()

    def __iter__(self) -> Download:
        return self

    def __next__(self) -> bytes:
        return next(self._chunks)

    def close(self) -> None:
        """Called by the server at the end of the request; the body is closed at the end of the transfer."""
        if not self._given:
            self._chunks.close()
            self._close_body()
            if self._source is not None:
                self._source.close()

    def _close_body(self) -> None:
        if hasattr(self.__wrapped__, "close"):
            self.__wrapped__.close()

    def use(self, file: file_pieces.PieceFile) -> bool:
        """Take note of the file that the body comes from."""
        self._source = _File(file, self._part) if file.start(FIRST) else None
        return self._source is not None

    def relay(self, relay: _bodies.Relay | None) -> bool:
        """Take note of the relay that the body comes from, if it does."""
        self._source = None if relay is None else _Store(relay, self._part)
        return relay is not None

    def _iterate(self) -> Any:
        self._iterator = iter(self.__wrapped__)
        first = next(self._iterator, None)
        if first is None:
            return
        source = self._source
        if source is not None and source.is_used:
            why_not = source.why_not(first)
            # Before the headers: a signal that comes while uWSGI's thread starts another one goes to any thread.
            if why_not is None and not sender.begin():
                why_not = Reason.LIMIT
            if why_not is None:
                # The server sends the headers. It comes back only if it could.
                yield b""
                why_not = self._give_away(source, first)
                if why_not is None:
                    return
            source.stop()
        else:
            why_not = Reason.WRAPPED_BODY
        _counts.fell_back(why_not)
        yield first
        yield from self._iterator

    def _give_away(self, source: _File | _Store, first: bytes) -> Cause | None:
        """Have the transfer go on without the server; why not, if that cannot be."""
        try:
            connection = _uwsgi.connection()
        except OSError:
            return Reason.REFUSED
        try:
            transfer = source.transfer(connection, first, self._ended)
            self._context = _context()
            self._given = sender.take(transfer, most(), config.effective().transfers * _MEMORY)
        finally:
            if not self._given:
                os.close(connection)
        if not self._given:
            return Reason.LIMIT
        _counts.took()
        return None

    def _ended(self, transfer: Any) -> None:
        """Do what glance does once the server has sent the body, or could not."""
        if self._context is not None:
            self._context.update_store()
        _counts.moved(transfer.sent)
        log.log(
            log.INFO, "fastio: %s: %d of %d bytes sent in %.3f s%s", self._request, transfer.sent,
            transfer.length, time.monotonic() - self._began, f": {transfer.cause}" if transfer.cause else "",
        )  # fmt: skip
        assert self._source is not None
        with _uncaught():
            self._source.account(transfer, self._iterator)
            if transfer.client_is_gone and _uwsgi.raises_write_errors():
                # As uWSGI reports it to the application.
                raise OSError("write error")
        with _uncaught():
            self._close_body()
        with _uncaught():
            self._source.close()


class _File:
    """An image in a file, where it comes from."""

    def __init__(self, file: file_pieces.PieceFile, part: Part) -> None:
        self._file = file
        self._part = part

    @property
    def is_used(self) -> bool:
        """Whether the body's first chunk was from there."""
        return self._file.begin is not None

    def why_not(self, first: bytes) -> Cause | None:
        """Why the rest is upstream's to send; None if the file has all that was announced to the client."""
        file = self._file
        begin, length, whole = self._part
        there = os.fstat(file.fileno()).st_size - begin
        if file.begin != begin or there < length or whole and there > length:
            return Reason.FRAMING
        if length <= len(first):
            return Reason.SMALL
        return None if len(sender) < most() else Reason.LIMIT

    def stop(self) -> None:
        """Have the body be of bytes, for upstream's code."""
        self._file.stop()

    def transfer(self, connection: int, first: bytes, ended: Callable[[Transfer], None]) -> Transfer:
        """The transfer of all the body, whose first chunk is ``first``."""
        begin, length, _ = self._part
        return FileTransfer(
            connection, self._file.fileno(), begin, begin + length, _uwsgi.patience(), ended, _uwsgi.harakiri()
        )

    def account(self, transfer: FileTransfer, body: Iterator[Any]) -> None:
        """Have upstream's code do what it does as it gets what was sent."""
        file = self._file
        file.end = transfer.position
        while file.position < file.end:
            piece = next(body, None)
            if type(piece) is not file_pieces.Piece:
                return
            piece.sent += piece.left
            piece.ended = True
        if not transfer.client_is_gone:
            # At the end of the file, or where it cannot be read: what upstream does is for upstream to do.
            file.stop()
            next(body, None)

    def close(self) -> None:
        """Let go of the image, after the body is closed."""


class _Store:
    """An image in a store that gives it in chunks; the same methods."""

    is_used = True

    def __init__(self, relay: _bodies.Relay, part: Part) -> None:
        self._relay = relay
        self._part = part

    def why_not(self, first: bytes) -> Cause | None:
        if type(first) is not bytes:
            return Reason.INPUT
        if self._part.length <= FIRST:
            return Reason.SMALL
        return None if len(sender) < most() else Reason.LIMIT

    def stop(self) -> None:
        """It takes the chunks itself, until their number is reported."""

    def transfer(self, connection: int, first: bytes, ended: Callable[[Transfer], None]) -> Transfer:
        context = _context()

        def next_chunk() -> Any:
            if context is not None:
                context.update_store()
            return self._relay.take()

        self._first = len(first)
        return ChunkTransfer(connection, first, next_chunk, self._part.length, _uwsgi.patience(), ended)

    def account(self, transfer: ChunkTransfer, body: Iterator[Any]) -> None:
        if not transfer.client_is_gone:
            failure, transfer.failure = transfer.failure or transfer.error, None
            self._relay.tell(transfer.taken - self._first, failure)
            deque(body, maxlen=0)

    def close(self) -> None:
        self._relay.close()


@contextlib.contextmanager
def _uncaught() -> Iterator[None]:
    """Does what the server does with what an application raises."""
    try:
        yield
    except Exception:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]


def _context() -> Any:
    """The context of this request, by which lines of the log name it; None if there is none."""
    found = sys.modules.get("oslo_context.context")
    return None if found is None else found.get_current()


def most() -> int:
    """Concurrent transfers of this process: each has two descriptors, of half of those that there may be."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = config.effective().transfers
    return most if soft == resource.RLIM_INFINITY else min(most, soft // 4)


def notes() -> list[str]:
    """Which of the service's stores have images that are no files, and chunks that not every thread may ask for."""
    others = ", ".join(sorted(config.stores() - {"filesystem", *_bodies.RELAYED}))
    return [f"glance_slow_clients: downloads from {others} hold a worker, like upstream"] if others else []


PATCH = Patch(
    __name__,
    summary="glance under uWSGI: a download holds no worker while its client reads",
    changes="uWSGI takes the request for done, and logs it, when the headers are sent; its harakiri does not count "
    "what comes after",
    targets=(
        Target(
            "glance.common.wsgi_app:init_app",
            make_init_app,
            Uses("", "atexit drain_workers load_paste_app"),
        ),
        Target(
            "glance.common.wsgi_app:drain_workers",
            make_drain_workers,
            Uses("", "pool shutdown"),
        ),
        *_bodies.targets(lambda: not _uwsgi.why_not(), relays=True),
    ),
    requires=("glance >= 33.0, < 34",),
    # Its own server, of eventlet, has a greenlet for each client.
    not_needed_in=("glance < 33",),
    notes=notes,
    unused=_uwsgi.why_not,
)
