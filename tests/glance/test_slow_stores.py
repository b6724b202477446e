"""``glance_slow_clients`` with a store without files: results are stock's, and no client waits for a slow one."""

import contextlib
import json
import os
import random
import re
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks.backends import glance_logs as logs
from benchmarks.backends.glance import Service
from tests.backends import required
from tests.eventually import until
from tests.glance.faults import Fault, Proxy
from tests.glance.sending import Sending, given_away, start_giving
from tests.glance.test_faults import RawDownload
from tests.glance.test_glance_sendfile import all_that_comes

MIB = 1 << 20
#: More than the buffers of a connection take.
DATA = random.Random(6).randbytes(20 * MIB + 321)
CONFIG = {"DEFAULT": {"enabled_backends": "images:file, web:http", "show_multiple_locations": True}}


class Web(NamedTuple):
    """A server that has :data:`DATA`, and the proxy before it."""

    url: str
    proxy: Proxy


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with required.usable("http")() as running, contextlib.ExitStack() as stack:
        place = running.access()["place"]
        (Path(place["directory"]) / "data").write_bytes(DATA)
        proxy = stack.enter_context(Proxy(int(place["url"].rpartition(":")[2])))
        yield Web(f"http://127.0.0.1:{proxy.port}/data", proxy)


@pytest.fixture
def start(serve: Callable[..., Service], tmp_path: Path) -> Callable[..., Sending]:
    return partial(start_giving, serve, tmp_path, config=CONFIG)


def make(sending: Sending, web: Web) -> str:
    """An image that is in the http store."""
    image = sending.api.create()
    place = {"url": web.url, "metadata": {"store": "web"}}
    change = json.dumps([{"op": "add", "path": "/locations/-", "value": place}])
    kind = {"Content-Type": "application/openstack-images-v2.1-json-patch"}
    answer = sending.api.ask("PATCH", f"/v2/images/{image}", change, kind)
    assert answer.status == 200, answer
    return image


def nothing_open(sending: Sending, web: Web) -> bool:
    """Whether no process of the service has a connection to the store, nor to a client."""
    ports = {web.proxy.port, sending.service.http_port}
    return not any(ports & set(ends) for ends in connections(sending))


def connections(sending: Sending) -> list[tuple[int, int]]:
    """The ports at both ends of the connections of the service."""
    found = []
    for pid in sending.service.pids():
        with contextlib.suppress(OSError):
            inodes = {os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir()}
            for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
                fields = line.split()
                # 0A: who listens.
                if fields[3] != "0A" and f"socket:[{fields[9]}]" in inodes:
                    found.append((int(fields[1][-4:], 16), int(fields[2][-4:], 16)))
    return found


def said(sending: Sending, what: str) -> bool:
    return what in sending.service.log()


def test_a_slow_client_holds_no_worker(start: Callable[..., Sending], web: Web) -> None:
    sending = start()
    image = make(sending, web)
    with contextlib.ExitStack() as stack:
        responses = [stack.enter_context(sending.api.started_download(image)) for _ in range(3)]
        # There is one worker, with one thread.
        assert sending.api.ask("GET", "/v2/schemas/image").status == 200
        assert sending.api.download(image).body == DATA
        # The others have not ended.
        until(partial(given_away, sending), "the line of the log")
        assert given_away(sending) == [(len(DATA), len(DATA))]
        for response in responses:
            assert response.read() == DATA
    sending.expect_notifications([("INFO", len(DATA))] * 4)
    until(partial(nothing_open, sending, web), "the connections to be closed")


def test_answers_are_those_of_stock(start: Callable[..., Sending], web: Web) -> None:
    found: dict[str, Any] = {}
    for kind in ("stock", "patched"):
        sending = start(kind)
        image = make(sending, web)
        port = sending.service.http_port
        part = sending.api.download(image, Range="bytes=100-5000099")
        sending.api.abort_download(image, 3 * MIB)
        head, nothing = all_that_comes(port, "HEAD", image)
        whole, body = all_that_comes(port, "GET", image)
        assert (nothing, body) == (b"", DATA)
        # The one that was not sent to the end is not notified.
        sending.expect_notifications([("INFO", len(DATA))])
        until(partial(nothing_open, sending, web), "the connections to be closed")
        lines = [re.sub("[0-9a-f-]{32,36}", "", line) for line in (*head, *whole)]
        found[kind] = [lines, part.status, part.body, "write error" in sending.service.log()]
        sent = [sizes for sizes in given_away(sending) if sizes[0] == sizes[1]]
        assert sent == ([] if kind == "stock" else [(len(DATA), len(DATA))])
    assert found["patched"] == found["stock"]


def test_a_store_that_fails_is_as_with_stock(start: Callable[..., Sending], web: Web) -> None:
    found: dict[str, Any] = {}
    for kind in ("stock", "patched"):
        sending = start(kind)
        image = make(sending, web)
        web.proxy.fail("GET", "/data", Fault(end_answer=9 * MIB + 5))
        try:
            logged = len(sending.service.log())
            answer = RawDownload(sending.service.http_port, image, "", 65536).rest()
            until(partial(said, sending, "IncompleteRead"), "the error in the log")
            until(partial(nothing_open, sending, web), "the connections to be closed")
            found[kind] = [answer, logs.classes(sending.service.log()[logged:])]
        finally:
            web.proxy.fail("GET", "/data", Fault())
        assert sending.notifications() == []
        assert sending.api.download(image).body == DATA
    assert found["patched"] == found["stock"]
    _, _, size, _, ended = found["stock"][0]
    assert MIB <= size < 9 * MIB + 5 and ended == "end"
    until(lambda: len(given_away(sending)) == 2, "both lines of the log")
    assert given_away(sending) == [(size, len(DATA)), (len(DATA), len(DATA))]


def test_a_worker_that_has_to_end_finishes_first(start: Callable[..., Sending], web: Web) -> None:
    sending = start()
    image = make(sending, web)
    (worker,) = sending.service.workers()
    with sending.api.started_download(image) as response:
        os.kill(worker, signal.SIGHUP)
        until(lambda: "Gracefully killing worker" in sending.service.log(), "the signal to reach the worker")
        assert response.read() == DATA
    sending.expect_notifications([("INFO", len(DATA))])
    until(lambda: worker not in sending.service.workers(), "the next worker")
    assert sending.api.download(image).body == DATA


def test_transfers_beyond_the_memory_are_stock(start: Callable[..., Sending], web: Web) -> None:
    # 512 KiB for each, and three chunks of 1 MiB for the first.
    sending = start(FASTIO_TRANSFERS="10")
    image = make(sending, web)
    with sending.api.started_download(image) as response:
        # This one holds the worker.
        assert sending.api.download(image).body == DATA
        assert given_away(sending) == []
        # An image in a file takes none.
        other = sending.api.make(DATA)
        assert sending.api.download(other).body == DATA
        until(partial(given_away, sending), "the line of the log")
        assert response.read() == DATA
    sending.expect_notifications([("INFO", len(DATA))] * 3)
    until(lambda: len(given_away(sending)) == 2, "the second line")
