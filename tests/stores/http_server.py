"""A small HTTP server that records requests and answers, or fails, like the test wants.

nginx and Swift answer correctly; this one breaks off, stalls and refuses, and sees how a body was framed.
"""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.stores.images import KIB


@dataclass
class Request:
    """One request as it came over the wire."""

    method: str
    path: str
    headers: dict[str, str]
    #: number of the TCP connection, from 0
    connection: int
    body: bytes = b""
    #: sizes of the chunks, where the body was sent in chunked encoding
    chunks: list[int] = field(default_factory=list)


@dataclass
class Answer:
    """The answer."""

    status: str = "200 OK"
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    #: bytes of the body after which the connection is closed; None for all, and keeping it
    breaks_off: int | None = None
    #: waited for before the rest of the body is sent
    hold: threading.Event | None = None
    #: bytes of the body that are sent before ``hold``
    before_hold: int = 0
    #: answer before the request's body is read; it is read and thrown away afterwards
    early: bool = False
    #: bytes of each chunk of a chunked encoding; 0 for a body of known length
    chunked: int = 0


class Server:
    """Answers each request with what ``answer(request)`` returns; with TLS if it is given a context."""

    def __init__(self, answer: Callable[[Request], Answer], context: ssl.SSLContext | None = None) -> None:
        self._answer = answer
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.port}"
        self.requests: list[Request] = []
        #: address of each connection's client
        self.clients: list[str] = []
        self._connections: list[socket.socket] = []
        self._closing = False
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def close(self) -> None:
        self._closing = True
        # Wakes the thread in accept().
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port)).close()
        # A hub would go on waiting for a descriptor that is closed here, and is another file's soon.
        self._threads[0].join(10)
        self._listener.close()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(1)

    def _start(self, target: Callable[..., None], *args: Any) -> None:
        self._threads.append(threading.Thread(target=target, args=args, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        while not self._closing:
            try:
                connection, address = self._listener.accept()
            except OSError:
                return
            if self._closing:
                connection.close()
                return
            number = len(self._connections)
            self._connections.append(connection)
            self.clients.append(address[0])
            self._start(self._serve, connection, number)

    def _begin(self, connection: socket.socket) -> None:
        """The bytes before TLS."""

    def _serve(self, connection: socket.socket, number: int) -> None:
        try:
            self._begin(connection)
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
        except OSError:
            connection.close()
            return
        # With TLS, the one that was accepted has given its descriptor to this one, which is to be shut down at the end.
        self._connections[number] = connection
        with contextlib.suppress(OSError, ValueError), connection, connection.makefile("rb") as stream:
            while self._exchange(connection, stream, number):
                pass

    def _exchange(self, connection: socket.socket, stream: Any, number: int) -> bool:
        line = stream.readline().decode().split()
        if not line:
            return False
        headers = {}
        while text := stream.readline().decode("latin-1").strip():
            name, _, value = text.partition(":")
            headers[name.lower()] = value.strip()
        request = Request(line[0], line[1], headers, number)
        self.requests.append(request)
        answer = self._answer(request)
        if not answer.early:
            self._read_body(stream, request)
        goes_on = self._send(connection, request, answer)
        if answer.early:
            self._read_body(stream, request)
        return goes_on and not answer.early

    def _read_body(self, stream: Any, request: Request) -> None:
        if request.headers.get("transfer-encoding") == "chunked":
            pieces = []
            while size := int(stream.readline(), 16):
                pieces.append(stream.read(size))
                request.chunks.append(size)
                stream.readline()
            stream.readline()
            request.body = b"".join(pieces)
        else:
            request.body = stream.read(int(request.headers.get("content-length", 0)))

    def _send(self, connection: socket.socket, request: Request, answer: Answer) -> bool:
        length = {"Transfer-Encoding": "chunked"} if answer.chunked else {"Content-Length": str(len(answer.body))}
        headers = {**length, **answer.headers}
        head = f"HTTP/1.1 {answer.status}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        connection.sendall(head.encode() + b"\r\n")
        body = b"" if request.method == "HEAD" else answer.body[: answer.breaks_off]
        if answer.chunked:
            parts = [body[start : start + answer.chunked] for start in range(0, len(body), answer.chunked)]
            body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in [*parts, b""])
        if answer.hold is not None:
            connection.sendall(body[: answer.before_hold])
            answer.hold.wait(60)
            body = body[answer.before_hold :]
        connection.sendall(body)
        return answer.breaks_off is None


@contextlib.contextmanager
def serving(answer: Callable[[Request], Answer], context: ssl.SSLContext | None = None) -> Iterator[Server]:
    """A server for the ``with`` block."""
    server = Server(answer, context)
    try:
        yield server
    finally:
        server.close()


def stock_block() -> int:
    """Bytes that urllib3 sends at a time."""
    import urllib3

    return 16 * KIB if int(urllib3.__version__.split(".")[0]) >= 2 else 8 * KIB


def in_turn(answers: Iterable[Answer]) -> Callable[[Request], Answer]:
    """Each request gets the next of ``answers``."""
    left = iter(answers)
    return lambda request: next(left)
