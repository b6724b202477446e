"""One HTTP request and its answer, with the time at which each part of it was over.

http.client is used unchanged: its calls are the parts (sent, head of the answer, content), and under gevent its sockets
wait without stopping other users.
"""

import ssl
import time
import urllib.parse
from collections.abc import Callable, Iterable, Mapping

# From the module itself: what the package has of that name is eventlet's once it was imported.
from http.client import HTTPConnection, HTTPMessage, HTTPResponse, HTTPSConnection, RemoteDisconnected
from typing import Any

from fastio.io import scratch

#: Bytes that are read at once, into the same memory: as many as are still in the processor's cache when they are
#: compared. Processor time and cache that the load takes are lost to the service.
READ_SIZE = 256 << 10
#: Bytes of an error's text that are read, to be recorded.
ERROR_BYTES = 500


class Exchange:
    """The course of a request: times of :func:`time.perf_counter`, None for what was not reached."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.sent: float | None = None
        self.first_byte: float | None = None
        self.end: float | None = None
        #: of the object, in the direction of the operation; whoever knows which these are counts them
        self.bytes = 0
        #: 0 until there is an answer
        self.status = 0
        self.headers: HTTPMessage | None = None
        #: the beginning of the content of an answer that is an error
        self.text = b""


class Connection:
    """Where the requests of a user go.

    :param url: of the service: scheme, host and port count
    :param keep_alive: one connection for all requests; else each has its own
    :param patience: seconds that the service may be silent
    :param source: address of this machine that connections come from; empty: the kernel chooses
    """

    def __init__(self, url: str, keep_alive: bool = True, patience: float = 60, source: str = "") -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not the URL of a service, such as http://127.0.0.1:8080")
        self.host = parts.netloc
        self._keep_alive = keep_alive
        self._buffer: memoryview | None = None
        kind: Callable[..., HTTPConnection] = HTTPConnection
        more: dict[str, Any] = {"source_address": (source, 0)} if source else {}
        if parts.scheme == "https":
            kind = HTTPSConnection
            more["context"] = ssl.create_default_context()
        self._connection = kind(parts.hostname, parts.port, timeout=patience, **more)

    def exchange(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: Callable[[], Iterable[bytes]] | None = None,
        length: int = 0,
        into: Callable[[memoryview], None] | None = None,
        found: Exchange | None = None,
    ) -> Exchange:
        """Do it, and return what happened; an answer with an error of HTTP is an answer.

        :param path: path and query, quoted
        :param body: gives the pieces of the request's content, which has ``length`` bytes
        :param into: is called with each piece of the answer's content, unless it is an error; the piece is not there
            any more after the call
        :param found: is filled in; also when an exception is raised it says how far it came
        :raises OSError: or :class:`http.client.HTTPException`, if there is no whole answer
        """
        found = Exchange() if found is None else found
        kept = self._connection.sock is not None

        def answered() -> HTTPResponse:
            connection = self._connection
            connection.putrequest(method, path, skip_accept_encoding=True)
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            if not self._keep_alive:
                connection.putheader("Connection", "close")
            if body is not None:
                connection.putheader("Content-Length", str(length))
            connection.endheaders()
            for number, piece in enumerate(body() if body is not None else ()):
                if number:
                    _let_others()
                connection.send(piece)
            found.sent = time.perf_counter()
            return connection.getresponse()

        try:
            try:
                answer = answered()
            except (RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                if not kept:
                    raise
                # A connection may be closed by the other end while nothing goes on; a new one does not break off.
                self._connection.close()
                answer = answered()
            found.first_byte = time.perf_counter()
            found.status, found.headers = answer.status, answer.headers
            self._receive(answer, found, into)
            found.end = time.perf_counter()
        except BaseException:
            # The rest of this answer must not be taken for the answer to the next request.
            self._connection.close()
            raise
        if not self._keep_alive:
            self._connection.close()
        return found

    def _receive(self, answer: HTTPResponse, found: Exchange, into: Callable[[memoryview], None] | None) -> None:
        if self._buffer is None:
            self._buffer = scratch.allocate(READ_SIZE)
        buffer = self._buffer
        failed = answer.status >= 400
        # Until the buffer is full: of chunked content readinto1() would give one chunk per call.
        while count := answer.readinto(buffer):
            if failed:
                found.text += bytes(buffer[: min(count, ERROR_BYTES - len(found.text))])
            elif into is not None:
                into(buffer[:count])
            if count == READ_SIZE:
                _let_others()

    def close(self) -> None:
        self._connection.close()


def _let_others() -> None:
    """Let other users go on. Under gevent a socket that is ready is not waited for: who is served fast enough would
    keep all others waiting, time-outs and the CPU samples among them, until its object is at an end."""
    time.sleep(0)
