"""Conclusions on the order of events on two hosts."""

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
    """A message, with its times of sending and receiving, in ms since the beginning."""
    for each in processes:
        each.write(directory)
    up = {each.host.name: each.host.up for each in processes}
    return [
        (each.what.partition(" of ")[0], (each.sent - up[each.sender.host]) // MS,
         (each.received - up[each.receiver.host]) // MS)
        for each in messages.messages(reading.read([directory]))
    ]  # fmt: skip


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
