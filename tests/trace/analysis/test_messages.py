"""What is concluded of the order of events on two hosts, and what is not."""

import pathlib

import pytest

from fastio.trace.analysis import messages, reading
from tests.trace.synthetic import BEGIN, MS, Host, Process


@pytest.fixture
def client() -> Process:
    return Process(Host("client1"), 100, "client")


@pytest.fixture
def server() -> Process:
    return Process(Host("api1"), 200, "glance-api")


def found(directory: pathlib.Path, *processes: Process) -> list[tuple[str, int, int]]:
    """What is a message, when it was sent and when it was received, in ms since the beginning."""
    for each in processes:
        each.write(directory)
    up = {each.host.name: each.host.up for each in processes}
    return [
        (each.what.partition(" of ")[0], (each.sent - up[each.sender.host]) // MS,
         (each.received - up[each.receiver.host]) // MS)
        for each in messages.messages(reading.read([directory]))
    ]  # fmt: skip


@pytest.mark.parametrize(("outcome", "answered"), [("ok", True), ("aborted", False), ("error", False)])
def test_who_did_not_wait_for_the_answer_says_nothing_of_its_end(tmp_path, client, server, outcome, answered):
    name = {"global": "req-1"}
    span = client.begin(BEGIN, "client.request", **name)
    client.end(BEGIN + 50 * MS, span, outcome=outcome)
    # A client that has gone may have done so before the server began: the connection was in a queue.
    span = server.begin(BEGIN + 10 * MS, "glance.request", **name)
    # The server looks for more data after the last, which the client may have by then.
    server.end(BEGIN + 60 * MS, span)
    expected = [("client.request", 0, 10), ("answer to client.request", 10, 50)]
    assert found(tmp_path, client, server) == expected[: 1 + answered]


def test_of_what_is_sent_again_the_first_comes_before_all_arrivals(tmp_path, client, server):
    for process, name, moments in ((client, "sent", (3, 7)), (server, "received", (5, 9))):
        span = process.begin(BEGIN, "test.span")
        for moment in moments:
            process.point(BEGIN + moment * MS, f"message.{name}", span, message="m")
        process.end(BEGIN + 9 * MS, span)
    assert found(tmp_path, client, server) == [("message m", 3, 5), ("message m", 3, 9)]


def test_of_what_several_processes_send_nothing_is_concluded(tmp_path, client, server):
    other = Process(Host("client2"), 100, "client")
    for each, name, what in (
        (client, "client.request", "sent"), (other, "client.request", "sent"), (server, "glance.request", "received")
    ):  # fmt: skip
        span = each.begin(BEGIN, name, None, **{"global": "req-1"})
        each.point(BEGIN + MS, f"message.{what}", span, message="m")
        each.end(BEGIN + 2 * MS, span)
    assert found(tmp_path, client, other, server) == []


def test_of_requests_that_overlap_only_what_holds_for_all_is_concluded(tmp_path, client, server):
    name = {"global": "req-1"}
    for begin, end in ((0, 30), (10, 50)):
        span = client.begin(BEGIN + begin * MS, "client.request", **name)
        client.end(BEGIN + end * MS, span)
    for begin, end in ((5, 25), (15, 45)):
        span = server.begin(BEGIN + begin * MS, "glance.request", **name)
        server.end(BEGIN + end * MS, span)
    assert sorted(found(tmp_path, client, server)) == [
        ("answer to client.request", 5, 50), ("answer to client.request", 15, 50),
        ("client.request", 0, 5), ("client.request", 0, 15),
    ]  # fmt: skip
