"""``green_wsgi_chunked``: the chunks of a chunked response go out as they are, and the same bytes as upstream's."""

from __future__ import annotations

import gc
import re
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fastio
from fastio import counters
from tests.child import data
from tests.outcome import as_upstream

eventlet = pytest.importorskip("eventlet")

from eventlet import wsgi  # noqa: E402
from eventlet.green import socket, ssl  # noqa: E402
from eventlet.greenio import GreenSocket  # noqa: E402

KIB = 1 << 10
MIB = 1 << 20

#: The standard library's own, also where eventlet has monkey patched.
native_socket = eventlet.patcher.original("socket")

pytestmark = pytest.mark.fast_path("bytes_out", "writes")

GET = b"GET /path HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class Log:
    """Where a server logs to."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, line: str) -> None:
        self.lines.append(line)


class Server:
    """A real server of one application, in a greenlet."""

    def __init__(self, application: Any, tls: Any = None, **options: Any) -> None:
        self.log = Log()
        listener = eventlet.listen(("127.0.0.1", 0))
        self.address = listener.getsockname()
        if tls is not None:
            listener = tls.wrap_socket(listener, server_side=True)
        self._listener = listener
        self._greenlet = eventlet.spawn(wsgi.server, listener, application, log=self.log, debug=False, **options)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._greenlet.kill()
        self._listener.close()
        # A greenlet per connection may be ending still.
        eventlet.sleep(0)

    def connect(self) -> Any:
        return socket.create_connection(self.address)

    def connect_natively(self) -> Any:
        """A connection of the kernel's making: the server sees it, and what is sent by it, when others run again.

        So it never waits for the request, which with a short ``socket_timeout`` might not come in time.
        """
        return native_socket.create_connection(self.address)

    def get(self, request: bytes = GET) -> bytes:
        """All that the server sends until it closes the connection."""
        with self.connect() as client:
            client.sendall(request)
            return everything(client)

    def logged(self) -> list[str]:
        """The log, without what differs from one run to the next."""
        lines = [line for line in self.lines() if "(" not in line.split(" - - ")[0]]
        return [re.sub(r"\[.*?\]|\d+\.\d{6}", "", line) for line in lines]

    def lines(self) -> list[str]:
        eventlet.sleep(0)
        return self.log.lines


def everything(client: Any) -> bytes:
    parts = []
    while part := client.recv(1 << 20):
        parts.append(part)
    return without_date(b"".join(parts))


def without_date(response: bytes) -> bytes:
    return re.sub(rb"Date: [^\r]*", b"Date:", response)


def body(response: bytes) -> bytes:
    """What the chunks of a response hold."""
    headers, _, rest = response.partition(b"\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in headers
    parts: list[bytes] = []
    while True:
        line, _, rest = rest.partition(b"\r\n")
        size = int(line, 16)
        assert rest[size : size + 2] == b"\r\n"
        if not size:
            assert rest == b"\r\n"
            return b"".join(parts)
        parts.append(rest[:size])
        rest = rest[size + 2 :]


def yields(*chunks: Any, headers: Any = ()) -> Callable[..., Any]:
    """An application that responds with these chunks."""

    def application(environ: Any, start_response: Any) -> Iterator[Any]:
        start_response("200 OK", [("Content-Type", "application/octet-stream"), *headers])
        return iter(chunks)

    return application


def writes(*chunks: Any) -> Callable[..., Any]:
    """An application that calls what ``start_response()`` returns."""

    def application(environ: Any, start_response: Any) -> list[Any]:
        write = start_response("200 OK", [("Content-Type", "application/octet-stream")])
        for chunk in chunks:
            write(chunk)
        return []

    return application


def _fails(environ: Any, start_response: Any) -> Iterator[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    yield data(1, 10_000)
    yield data(2, 10_000)
    raise ValueError("oops")


def _starts_again(environ: Any, start_response: Any) -> Iterator[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    yield data(1, 10_000)
    try:
        raise ValueError("oops")
    except ValueError as error:
        start_response("500 Oops", [], (type(error), error, error.__traceback__))
    yield b"never"


def _never_starts(environ: Any, start_response: Any) -> Iterator[bytes]:
    yield b"x" * 5000


def _fails_at_once(environ: Any, start_response: Any) -> Any:
    raise ValueError("oops")


def _echoes(environ: Any, start_response: Any) -> Iterator[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    while part := environ["wsgi.input"].read(5000):
        yield part


#: Applications whose responses are chunked.
CHUNKED: dict[str, Callable[..., Any]] = {
    "small": yields(b"a", b"bc", b"d" * 5000, b"e"),
    "one": yields(data(1, 100_000)),
    "64 KiB": yields(*[data(n, 65536) for n in range(10)]),
    "odd": yields(*[data(n, size) for n, size in enumerate((4096, 16_383, 16_384, 16_385, 100_003, 5_000_001))]),
    "empty among them": yields(b"", data(1, 5000), b"", data(2, 5000), b""),
    "other buffers": yields(bytearray(data(1, 5000)), memoryview(data(2, 5000)), data(3, 5000), "text" * 2000),
    "written": writes(data(1, 5000), data(2, 300_000), b"x"),
    "written buffers": writes(data(1, 10), bytearray(data(2, 5000)), memoryview(data(3, 5000)), data(4, 5000)),
    "an end of its own": writes(data(1, 10), data(2, 10), b"", data(3, 10)),
    "fails": _fails,
    "starts again": _starts_again,
}  # fmt: skip

#: Applications whose responses are not, or where there is no second chunk.
OTHERS: dict[str, Callable[..., Any]] = {
    "nothing": yields(),
    "only empty": yields(b"", b""),
    "length": yields(data(1, 5000), data(2, 5000), headers=[("Content-Length", "10000")]),
    "no content": lambda environ, start_response: start_response("204 No Content", []) and iter([]),
    "list": lambda environ, start_response: start_response("200 OK", []) and [data(1, 5000), data(2, 5000)],
    "never starts": _never_starts,
    "fails at once": _fails_at_once,
    "text written": writes("text"),
}


def exchange(application: Any, request: bytes = GET, **options: Any) -> tuple[bytes, list[str]]:
    with Server(application, **options) as server:
        return server.get(request), server.logged()


@pytest.mark.parametrize("name", CHUNKED)
def test_the_same_response(hub: Any, name: str) -> None:
    assert b"Transfer-Encoding: chunked" in as_upstream(lambda: exchange(CHUNKED[name]))[0]
    assert counters.writes > 0


@pytest.mark.parametrize("name", OTHERS)
def test_other_responses(hub: Any, name: str) -> None:
    as_upstream(lambda: exchange(OTHERS[name]))


@pytest.mark.parametrize("name", [*CHUNKED, *OTHERS])
@pytest.mark.parametrize(
    "request_line, headers",
    [
        (b"GET / HTTP/1.0", b""),
        (b"HEAD / HTTP/1.1", b"Connection: close\r\n"),
        (b"GET / HTTP/1.0", b"Connection: keep-alive\r\n"),
    ],
    ids=["HTTP 1.0", "HEAD", "keep-alive"],
)
def test_other_requests(hub: Any, name: str, request_line: bytes, headers: bytes) -> None:
    application = {**CHUNKED, **OTHERS}[name]
    request = request_line + b"\r\nHost: localhost\r\n" + headers + b"\r\n"

    def responses() -> Any:
        with Server(application, keepalive=b"keep-alive" in headers) as server, server.connect() as client:
            client.sendall(request)
            if b"keep-alive" in headers:
                client.shutdown(socket.SHUT_WR)
            return everything(client), server.logged()

    as_upstream(responses)


def test_what_is_sent_is_not_copied(hub: Any) -> None:
    """The kernel's buffers are not counted, so what a chunk needs besides itself is what is copied of it."""

    def peak() -> int:
        chunk = data(1, 8 * MIB)

        def application(environ: Any, start_response: Any) -> Iterator[bytes]:
            start_response("200 OK", [("Content-Type", "text/plain")])
            yield b"x" * 5000
            tracemalloc.start()
            yield chunk
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()

        peaks: list[int] = []
        buffer = bytearray(64 * KIB)
        with Server(application) as server, server.connect() as client:
            client.sendall(GET)
            while client.recv_into(buffer):
                pass
        return peaks[0]

    assert peak() > 15 * MIB, "upstream has mended it, and the fix can go"
    with fastio.patched("green_wsgi_chunked"):
        assert peak() < MIB


def test_one_connection_many_responses(patched: Any, hub: Any) -> None:
    with Server(_echoes) as server, server.connect() as client:
        for number in range(5):
            payload = data(number, 100_000 + number)
            client.sendall(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(payload))
            sender = eventlet.spawn(client.sendall, payload)
            response = b""
            while not response.endswith(b"\r\n0\r\n\r\n"):
                response += client.recv(100_000)
            sender.wait()
            assert body(response) == payload
    counts = fastio.metrics().patches["green_wsgi_chunked"]
    assert counts.calls >= 5 and 0 < counts.bytes <= sum(100_000 + number for number in range(5))


def test_a_client_that_goes_away(hub: Any) -> None:
    def outcome() -> Any:
        closed = []

        class Chunks:
            def __iter__(self) -> Iterator[bytes]:
                for number in range(1000):
                    yield data(number, 100_000)

            def close(self) -> None:
                closed.append(True)

        def application(environ: Any, start_response: Any) -> Chunks:
            start_response("200 OK", [])
            return Chunks()

        with Server(application) as server:
            with server.connect() as client:
                client.sendall(GET)
                client.recv(10)
            while not any("GET /path" in line for line in server.lines()):
                eventlet.sleep(0.001)
            return closed, [line.rpartition("\n")[2] for line in server.lines() if "Error" in line]

    upstream = outcome()
    with fastio.patched():
        found = outcome()
    assert found[0] == upstream[0] == [True]


def test_a_client_that_reads_nothing(hub: Any) -> None:
    def errors() -> list[str]:
        found: list[str] = []

        def application(environ: Any, start_response: Any) -> list[bytes]:
            write = start_response("200 OK", [])
            try:
                while True:
                    write(data(1, 1 << 20))
            except Exception as error:
                found.append(repr(error))
                raise

        with Server(application, socket_timeout=0.05) as server, server.connect_natively() as client:
            client.sendall(GET)
            while not found:
                eventlet.sleep(0.01)
        return found

    as_upstream(errors)


@pytest.mark.parametrize("name", CHUNKED)
def test_tls(hub: Any, certificate: Any, name: str) -> None:
    def exchange() -> Any:
        server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server_side.load_cert_chain(certificate)
        client_side = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client_side.load_verify_locations(certificate)
        with Server(CHUNKED[name], tls=server_side) as server, server.connect() as plain:
            client = client_side.wrap_socket(plain, server_hostname="localhost")
            client.sendall(GET)
            return everything(client), server.logged()

    as_upstream(exchange)


def test_a_socket_of_another_class(hub: Any) -> None:
    """Somebody's socket may do more than send."""

    def sent() -> tuple[bytes, bytes]:
        class Own(GreenSocket):
            def send(self, data: Any, flags: int = 0) -> int:
                count = super().send(data, flags)
                seen.append(bytes(data)[:count])
                return count

        seen: list[bytes] = []
        with Server(CHUNKED["odd"]) as server:
            accept = server._listener.accept
            server._listener.accept = lambda: (Own(accept()[0].fd), ("127.0.0.1", 0))
            response = server.get()
        return response, without_date(b"".join(seen))

    upstream = as_upstream(sent)
    assert upstream[0] == upstream[1]


@pytest.mark.parametrize("size", [-1, 0, 5, 16, 100_000])
def test_other_buffers_of_the_connection(hub: Any, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(wsgi.HttpProtocol, "wbufsize", size)
    as_upstream(lambda: exchange(CHUNKED["odd"]))


def test_what_is_in_the_buffer_goes_first(hub: Any) -> None:
    def application(environ: Any, start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", [])
        yield data(1, 5000)
        environ["wsgi.input"].wfile.write(b"5\r\nhello\r\n")
        yield data(2, 5000)

    request = GET.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx")
    upstream = as_upstream(lambda: exchange(application, request))
    assert body(upstream[0]) == data(1, 5000) + b"hello" + data(2, 5000)


def test_the_handler_is_left_as_it_was(patched: Any, hub: Any) -> None:
    seen = []

    class Protocol(wsgi.HttpProtocol):
        def handle_one_response(self) -> None:
            before = self.application
            super().handle_one_response()
            seen.append(self.application is before)

    application = yields(data(1, 5000), data(2, 5000))
    assert body(exchange(application, protocol=Protocol)[0]) == data(1, 5000) + data(2, 5000)
    assert seen == [True]


def test_a_response_leaves_nothing_for_the_garbage_collector(hub: Any) -> None:
    """Upstream's do not either: what a response held is free as soon as it has been sent."""

    def found() -> int:
        with Server(yields(data(1, 5000), data(2, 5000))) as server:
            server.get()
            gc.collect()
            # What is there is not looked at again.
            gc.freeze()
            gc.disable()
            try:
                server.get()
                eventlet.sleep(0)
                return gc.collect()
            finally:
                gc.enable()
                gc.unfreeze()

    found()
    # What something else leaves at the same time, or takes away, is in some of them only.
    upstream = max(found() for _ in range(3))
    with fastio.patched():
        found()
        assert min(found() for _ in range(3)) <= upstream
