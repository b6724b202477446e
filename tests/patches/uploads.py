"""A server that records what clients upload, byte by byte, and says what it is told to say."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from typing import Any

KIB = 1 << 10
MIB = 1 << 20
#: Bytes of a block that urllib3 sends, and of what is sent first.
BLOCK = 16 * KIB
BLOCKS = "urllib3_blocks"
SENDFILE = "urllib3_sendfile"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Recorder:
    """A server on a port of its own.

    :param size: bytes of each request's body, whatever its headers say; ``None`` of one that ends as chunks do
    :param answers: to the requests, in this order; the last one is said again
    :param context: with TLS
    """

    def __init__(
        self, size: int | None, answers: Sequence[bytes] = (OK,), context: ssl.SSLContext | None = None
    ) -> None:
        self.size = size
        self._context = context
        self._answers = list(answers)
        #: headers and body of each request, as they came
        self.requests: list[tuple[bytes, bytes]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.port}/"
        self._connections: list[socket.socket] = []
        self._closing = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._closing:
                connection.close()
                self._listener.close()
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.callback(lambda: connection.close())
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            self._connections.append(connection)
            while self._take(connection):
                connection.sendall(self._answers[min(len(self.requests), len(self._answers)) - 1])

    def _take(self, connection: socket.socket) -> bool:
        data = bytearray()
        while b"\r\n\r\n" not in data:
            if not (piece := connection.recv(64 * KIB)):
                return False
            data += piece
        end = data.index(b"\r\n\r\n") + 4
        while len(data) - end < self.size if self.size is not None else not data.endswith(b"\r\n0\r\n\r\n"):
            if not (piece := connection.recv(MIB)):
                break
            data += piece
        self.requests.append((bytes(data[:end]), bytes(data[end:])))
        return True

    def close(self) -> None:
        self._closing = True
        # Wakes the thread in accept(). Those that serve close their connections themselves.
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port)).close()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def recorder(
    size: int | None, answers: Sequence[bytes] = (OK,), context: ssl.SSLContext | None = None
) -> Iterator[Recorder]:
    """The server for the ``with`` block."""
    server = Recorder(size, answers, context)
    try:
        yield server
    finally:
        server.close()


def outcome(call: Any) -> Any:
    """What a call returns, or the class and the text of what it raises."""
    try:
        return call()
    except Exception as error:
        return type(error), str(error)
