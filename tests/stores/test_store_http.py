"""``store_http``: chunks of the configured size, from nginx and from servers that fail."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("glance_store")
http = pytest.importorskip("glance_store._drivers.http")

import fastio  # noqa: E402
from benchmarks.backends.base import reserved_port  # noqa: E402
from fastio.io import lowwater  # noqa: E402
from tests.stores.http_server import Answer, Request, in_turn, serving  # noqa: E402
from tests.stores.images import KIB, MIB, content, sizes  # noqa: E402

NAME = "store_http"
DEFAULT = MIB


def test_the_kernel_gathers_a_chunk(http_store: Any, marks: list[int]) -> None:
    url = http_store.place(content(8 * MIB))
    with fastio.patched(NAME):
        http_store.read(url)
    counts = fastio.metrics().patches[NAME]
    assert (counts.calls, counts.bytes, counts.fallbacks) == (1, 8 * MIB, {})
    assert marks[:8] == [lowwater.MOST] * 7 + [0]
    marks.clear()
    http_store.read(url)
    assert marks == []


@settings(deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))
@given(
    chunk=st.sampled_from([4 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, 100_003]),
    chunks=st.integers(0, 6),
    beside=st.sampled_from([0, 1, -1, 8191, 8192, 8193, 65536]),
)
def test_every_size(http_store: Any, chunk: int, chunks: int, beside: int) -> None:
    data = content(max(0, chunk * chunks + beside))
    url = http_store.place(data)
    with fastio.patched(NAME, store_chunk_sizes={"*": chunk}):
        found, size = http_store.get(url)
        assert size == len(data)
        pieces = list(found)
    assert b"".join(pieces) == data
    assert [len(piece) for piece in pieces] == sizes(len(data), chunk)


def outcome(store: Any, answer: Callable[[Request], Answer]) -> Any:
    """What can be read from such a server, how it ends, and whether the connection is given back or closed."""
    found = b""
    with serving(answer) as server:
        try:
            chunks, size = store.get(f"{server.url}/image")
            for chunk in chunks:
                found += chunk
        except Exception as error:
            text = str(error).replace(str(server.port), "PORT")
            return found, type(error), text
        requests = [(request.method, request.path) for request in server.requests]
        return found, size, requests


BODY = content(3 * MIB)

ANSWERS = {
    "broken off at once": lambda: [Answer(body=BODY, breaks_off=0)],
    "broken off": lambda: [Answer(body=BODY, breaks_off=1_500_000)],
    "broken off at the end": lambda: [Answer(body=BODY, breaks_off=3 * MIB - 1)],
    "not found": lambda: [Answer("404 Not Found", body=b"no such image")],
    "error": lambda: [Answer("500 Internal Server Error", body=b"it broke")],
    "an error of many words": lambda: [Answer("503 Service Unavailable", body=b"x" * 300_000)],
    "nothing": lambda: [Answer()],
    "empty body, no length": lambda: [Answer(headers={"Content-Length": "0"})],
}


@pytest.mark.parametrize("name", list(ANSWERS))
def test_failures_are_upstreams(http_store: Any, name: str) -> None:
    """The bytes before it, the exception and its text; and the chunk size does not matter to any of them."""
    with fastio.patched(NAME, store_chunk_sizes={"*": 4 * MIB}):
        patched = outcome(http_store, in_turn(ANSWERS[name]()))
    assert patched == outcome(http_store, in_turn(ANSWERS[name]()))


def test_no_server(http_store: Any) -> None:
    from glance_store import exceptions

    with reserved_port() as nobody:
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/image"
        with fastio.patched(NAME), pytest.raises(exceptions.RemoteServiceUnavailable):
            http_store.get(url)


def test_a_reader_that_stops_early_closes_the_connection(http_store: Any) -> None:
    with serving(in_turn([Answer(body=content(16 * MIB)), Answer(body=b"more")])) as server, fastio.patched(NAME):
        chunks, _ = http_store.get(f"{server.url}/image")
        assert len(chunks.another()) == DEFAULT
        chunks.wrapped.close()
        assert http_store.read(f"{server.url}/image") == b"more"
        assert [request.connection for request in server.requests] == [0, 1]


def test_a_slow_server_is_waited_for(http_store: Any) -> None:
    """Less than a chunk has arrived, and no more comes for a while: nothing is lost and nothing hangs."""
    hold = threading.Event()
    body = content(2 * MIB + 7)
    answer = Answer(body=body, hold=hold, before_hold=100_000)
    with serving(in_turn([answer])) as server, fastio.patched(NAME):
        chunks, _ = http_store.get(f"{server.url}/image")
        timer = threading.Timer(0.2, hold.set)
        timer.start()
        assert b"".join(chunks) == body
        timer.join()
