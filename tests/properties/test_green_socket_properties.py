"""Any buffers, sent in any way, arrive unchanged; any chunks make upstream's response."""

import array
import io
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastio
from tests.child import tile
from tests.properties.strategies import SIZES, fastio_settings, patterns

eventlet = pytest.importorskip("eventlet")

from eventlet import wsgi  # noqa: E402
from eventlet.green import socket  # noqa: E402

KINDS = st.sampled_from([bytes, bytearray, memoryview, partial(array.array, "B"), type("Bytes", (bytes,), {})])
BUFFERS = st.lists(st.tuples(patterns, st.sampled_from([*SIZES, 2_000_003]), KINDS), max_size=6)
READS = st.sampled_from([1000, 65536, 1 << 20])
#: The kernel doubles it, and has its own minimum.
ROOM = st.sampled_from([0, 10_000, 300_000, None])


def _give_room(sock: Any, room: int | None) -> None:
    if room is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, room)


def _everything(sock: Any, size: int) -> bytes:
    found = io.BytesIO()
    while part := sock.recv(size):
        found.write(part)
    return found.getvalue()


@given(buffers=BUFFERS, read=READS, room=ROOM, sizes=fastio_settings)
def test_sent_buffers_arrive(buffers: Any, read: int, room: int | None, sizes: dict[str, Any]) -> None:
    with fastio.patched(**sizes):
        one, two = socket.socketpair()
        with one, two:
            _give_room(one, room)
            reader = eventlet.spawn(_everything, two, read)
            for pattern, size, kind in buffers:
                assert one.sendall(kind(tile(pattern, size))) is None
            one.close()
            assert reader.wait() == b"".join(tile(pattern, size) for pattern, size, _ in buffers)


@given(
    chunks=st.lists(st.tuples(patterns, st.sampled_from([*SIZES, 2_000_003]), st.booleans()), max_size=6),
    minimum=st.sampled_from([0, 4096, 70_000]),
    read=READS,
    room=ROOM,
)
def test_chunked_responses_are_upstreams(chunks: Any, minimum: int, read: int, room: int | None) -> None:
    def application(environ: Any, start_response: Any) -> Iterator[bytes]:
        write = start_response("200 OK", [])
        for pattern, size, writes in chunks:
            chunk = tile(pattern, size)
            # An empty one that is written is the end of the response.
            if writes and chunk:
                write(chunk)
            else:
                yield chunk

    def response() -> bytes:
        listener = eventlet.listen(("127.0.0.1", 0))
        _give_room(listener, room)
        server = eventlet.spawn(wsgi.server, listener, application, log_output=False, minimum_chunk_size=minimum)
        with socket.create_connection(listener.getsockname()) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            found = _everything(client, read)
        server.kill()
        listener.close()
        return re.sub(rb"Date: [^\r]*", b"", found, count=1)

    upstream = response()
    with fastio.patched():
        assert response() == upstream
