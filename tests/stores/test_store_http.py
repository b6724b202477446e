"""``store_http``: chunks of the configured size, from nginx and from servers that fail."""

import threading
from typing import Any

import pytest

pytest.importorskip("glance_store")
http = pytest.importorskip("glance_store._drivers.http")

import fastio  # noqa: E402
from tests.outcome import as_upstream  # noqa: E402
from tests.stores.http_server import Answer, in_turn, serving  # noqa: E402
from tests.stores.images import KIB, MIB, content  # noqa: E402

NAME = "store_http"
DEFAULT = MIB


def read(store: Any, answer: Answer) -> Any:
    """Return the data of such a server, its end, and the requests to it."""
    found = b""
    end: Any = None
    with serving(in_turn([answer])) as server:
        try:
            for chunk in store.get(f"{server.url}/image")[0]:
                found += chunk
        except Exception as error:
            end = type(error), str(error).replace(str(server.port), "PORT")
        return found, end, [(request.method, request.path) for request in server.requests]


BODY = content(3 * MIB)
ANSWERS = [
    *(Answer(body=BODY, breaks_off=kept) for kept in (
        0, 1, 64 * KIB, 256 * KIB, 256 * KIB + 1, 700_000, 1_500_000, 3 * MIB - 1
    )),
    Answer("404 Not Found", body=b"no such image"),
    Answer("500 Internal Server Error", body=b"it broke"),
    Answer("503 Service Unavailable", body=b"x" * 300_000),
    Answer(),
]  # fmt: skip


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: f"{answer.status}, {answer.breaks_off}")
@pytest.mark.parametrize("chunk", ["256KiB", "4MiB"])
def test_failures_are_upstreams(http_store: Any, answer: Answer, chunk: str, marks: list[int]) -> None:
    """The bytes before it, the exception and its text; and the chunk size does not matter to any of them."""
    _, end, _ = as_upstream(lambda: read(http_store, answer), NAME, store_chunk_sizes={"*": chunk})
    assert (end is None) == (answer.status == "200 OK" and answer.breaks_off is None)
    assert any(marks) == (answer.breaks_off is not None and chunk == "256KiB")


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
