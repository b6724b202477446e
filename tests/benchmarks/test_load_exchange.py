"""One request and its answer: times, connections that are kept, and users that have their turn."""

import contextlib
import dataclasses
import socket

import pytest

from benchmarks.load import exchange, protocols
from benchmarks.load.exchange import Connection
from benchmarks.load.plan import Names, Operation, Plan
from tests.benchmarks import object_server

SIZE = 3 * exchange.READ_SIZE + 5


def reading(size: int) -> Operation:
    return Operation("read", objects=Names("c(1)", "object-"), sizes=f"c({size})B")


def plan(size: int) -> Plan:
    return Plan("logs", {"url": "http://127.0.0.1:1"}, (reading(size),), total=1)


def test_requests_come_from_the_address_that_is_chosen() -> None:
    chosen = Plan(
        "logs", {"url": "", "source_address": "127.0.0.3"}, (reading(SIZE),), total=1, keep_alive=False
    )  # fmt: skip
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = {**chosen.server, "url": f"http://127.0.0.1:{listener.getsockname()[1]}"}
        client = protocols.once(dataclasses.replace(chosen, server=server, patience=0.1))
        with contextlib.closing(client), pytest.raises(TimeoutError):
            client.connection.exchange("GET", "/")
        connection, address = listener.accept()
        connection.close()
    assert address[0] == "127.0.0.3"


def test_others_have_their_turn(monkeypatch) -> None:
    """While a large object is read, and while one is written."""
    turns: list[None] = []
    monkeypatch.setattr(exchange, "_let_others", lambda: turns.append(None))
    with object_server.serving(plan(SIZE)) as (url, _):
        Connection(url, keep_alive=False).exchange("GET", "/load1/object-1", into=lambda _: None)
        assert len(turns) == 3
    turns.clear()
    # It takes everything and answers nothing.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = Connection(f"http://127.0.0.1:{listener.getsockname()[1]}", keep_alive=False, patience=0.5)
        with pytest.raises(TimeoutError):
            connection.exchange("PUT", "/x-1", body=lambda: iter([b"x"] * 4), length=4)
    assert len(turns) == 3


def test_a_connection_that_was_closed_meanwhile_is_made_anew() -> None:
    def close_after(handler, count: int) -> bool:
        handler.close_connection = True
        return False

    with object_server.serving(plan(10), close_after) as (url, objects):
        connection = Connection(url)
        for _ in range(3):
            # Without the header that would announce it.
            assert connection.exchange("GET", "/load1/object-1").status == 200
        connection.close()
        assert len(objects.connections) == 3


def test_of_an_error_the_beginning_is_kept() -> None:
    def fail(handler, count: int) -> bool:
        object_server.answer(handler, 503, b"busy" * 1000)
        return True

    with object_server.serving(plan(10), fail) as (url, _):
        found = Connection(url, keep_alive=False).exchange("GET", "/load1/object-1", into=pytest.fail)  # type: ignore[arg-type]
    assert (found.status, found.text) == (503, b"busy" * (exchange.ERROR_BYTES // 4))


@pytest.mark.parametrize("url", ["ftp://127.0.0.1", "127.0.0.1:80", "http://"])
def test_urls_that_are_no_service(url) -> None:
    with pytest.raises(ValueError, match="is not the URL of a service"):
        Connection(url)
