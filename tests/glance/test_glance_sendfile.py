"""``glance_sendfile`` and ``glance_cache`` in a real glance-api: as stock, and without reading where that can be."""

import errno
import http.client
import random
import socket
import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks.backends.base import HOST
from benchmarks.backends.glance import Service
from benchmarks.backends.glance_api import ELSEWHERE, Api
from tests.eventually import until
from tests.glance.sending import Sending, open_images, start_sending

MIB = 1 << 20
DATA = random.Random(1).randbytes(9 * MIB + 12345)


#: The services that send images: stock, or a patched service by its own address, and by another one.
ASKED = {"stock": ("stock", ""), "mapped": ("patched", ""), "sendfile": ("patched", ELSEWHERE)}
WAYS = ("mapped", "sendfile")


@pytest.fixture(params=ASKED)
def way(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def start(serve: Callable[..., Service], tmp_path: Path) -> Callable[..., Sending]:
    """``start(way, flavor, disabled=…)`` starts glance 32."""

    def started(way: str, *args: Any, **options: Any) -> Sending:
        kind, source = ASKED[way]
        return start_sending(serve, tmp_path, "glance-32", kind, *args, source=source, **options)  # type: ignore[misc]

    return started


def by(way: str, count: int) -> dict[str, int]:
    """Return the bytes to send without reading them; stock reads all."""
    return {} if way == "stock" else {way: count}


def test_downloads(start: Callable[..., Sending], way: str) -> None:
    sending = start(way)
    api = sending.api
    image = api.make(DATA)
    answer, sent = sending.sent_by(lambda: api.download(image))
    assert answer.body == DATA
    assert answer.status == 200 and answer.headers["Content-Length"] == str(len(DATA))
    # The first chunk goes out with the headers.
    assert sent == by(way, len(DATA) - MIB)

    answer, sent = sending.sent_by(lambda: api.download(image, Range="bytes=100-5000099"))
    assert answer.status == 206 and answer.body == DATA[100:5000100]
    assert sent == by(way, 5000000 - MIB)

    answer, sent = sending.sent_by(lambda: api.download(image, Range="bytes=-10"))
    assert (answer.status, answer.body, sent) == (206, DATA[-10:], {})

    answer, sent = sending.sent_by(lambda: api.download(image, **{"X-Wrap": "1"}))
    assert (answer.status, answer.body == DATA, sent) == (200, True, {})

    sending.expect_notifications([("INFO", len(DATA)), ("INFO", 5000000), ("INFO", 10), ("INFO", len(DATA))])


def all_that_comes(port: int, method: str, image: str) -> tuple[list[str], bytes]:
    """The lines of the answer's head but for what differs from answer to answer, and every byte after it."""
    with socket.create_connection((HOST, port), timeout=60) as sock:
        request = f"{method} /v2/images/{image}/file HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n"
        sock.sendall(request.encode())
        with sock.makefile("rb") as file:
            head, _, body = file.read().partition(b"\r\n\r\n")
    volatile = ("date:", "x-openstack-request-id:")
    return [line for line in head.decode().split("\r\n") if not line.lower().startswith(volatile)], body


@pytest.mark.parametrize("flavor", ["", "caching"])
def test_head_is_answered_as_by_stock(start: Callable[..., Sending], flavor: str) -> None:
    heads = {}
    for way in ASKED:
        sending = start(way, flavor)
        image = sending.api.make(DATA)
        # Then the cache has it, if there is one.
        assert sending.api.download(image).body == DATA
        (heads[way], body), sent = sending.sent_by(partial(all_that_comes, sending.service.http_port, "HEAD", image))
        assert (body, sent) == (b"", {})
    assert heads["mapped"] == heads["sendfile"] == heads["stock"]


def over_tls(way: str) -> Callable[[Service], list[str]]:
    """Return a function that starts glance-api with TLS at one more port, ``service.tls_port``."""

    def command(service: Any) -> list[str]:
        service.tls_port = service.port()
        service.certificate, key = service.make_certificate()
        script = ["-m", "tests.glance.over_tls", HOST, str(service.tls_port), str(service.certificate), str(key)]
        program = [service.program("fastio"), "run"] if way != "stock" else [str(service.python())]
        return [*program, *script, "--config-file", str(service.etc / "glance-api.conf")]

    return command


def test_over_tls_it_is_read(start: Callable[..., Sending], way: str) -> None:
    sending = start(way, command=over_tls(way))
    service: Any = sending.service
    api = Api(service.tls_port, tls=ssl.create_default_context(cafile=str(service.certificate)))
    image = api.make(DATA)
    answer, sent = sending.sent_by(lambda: api.download(image))
    assert (answer.status, answer.body == DATA, sent) == (200, True, {})
    assert answer.headers["Content-Length"] == str(len(DATA))
    answer, sent = sending.sent_by(lambda: api.download(image, Range="bytes=100-5000099"))
    assert (answer.status, answer.body == DATA[100:5000100], sent) == (206, True, {})
    # It is the connection that makes the difference.
    answer, sent = sending.sent_by(lambda: sending.api.download(image))
    assert (answer.body == DATA, sent) == (True, by(way, len(DATA) - MIB))
    sending.expect_notifications([("INFO", len(DATA)), ("INFO", 5000000), ("INFO", len(DATA))])


def test_a_client_that_goes_away(start: Callable[..., Sending], way: str) -> None:
    sending = start(way)
    image = sending.api.make(DATA * 3)
    sending.api.abort_download(image, 5 * MIB)
    assert sending.api.download(image, Range="bytes=0-9").body == DATA[:10]
    # The one that was not sent to the end is not notified, and its file is closed.
    until(lambda: not open_images(sending.service), "the file to be closed")
    sending.expect_notifications([("INFO", 10)])


def rest(response: Any) -> bytes:
    """Return the bytes that a client gets until the server closes the connection."""
    try:
        return response.read()
    except http.client.IncompleteRead as error:
        return error.partial


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_is_truncated_within_a_piece(start: Callable[..., Sending], way: str) -> None:
    sending = start(way)
    image = sending.api.make(DATA)
    sending.counts("", "truncate")
    with sending.api.started_download(image) as response:
        got = rest(response)
    assert got == DATA[: len(got)]
    assert MIB < len(got) == next(sending.service.images.iterdir()).stat().st_size < len(DATA)
    sending.expect_notifications([("ERROR", len(got))])


@pytest.mark.parametrize("way", WAYS)
def test_where_that_fails_the_rest_is_read(start: Callable[..., Sending], way: str) -> None:
    sending = start(way)
    image = sending.api.make(DATA)
    for error in (errno.EINVAL, errno.EIO, errno.ENOSYS):
        answer, sent = sending.sent_by(lambda: sending.api.download(image), "", str(error))
        assert answer.body == DATA
        assert 0 < sent[way] < len(DATA) - MIB
    sending.expect_notifications([("INFO", len(DATA))] * 3)


def test_a_cached_image_is_sent_once_it_is_complete(start: Callable[..., Sending], way: str) -> None:
    sending = start(way, "caching")
    image = sending.api.make(DATA)
    answer, sent = sending.sent_by(lambda: sending.api.download(image))
    assert answer.body == DATA
    # While the cache is filled its code has to see the bytes.
    assert sent == {}
    cached = sending.service.cache / image
    assert cached.read_bytes() == DATA
    answer, sent = sending.sent_by(lambda: sending.api.download(image))
    assert answer.body == DATA
    assert sent == by(way, len(DATA) - MIB)
    sending.expect_notifications([("INFO", len(DATA))] * 2)


@pytest.mark.parametrize("way", WAYS)
def test_a_cached_file_that_is_truncated_within_a_piece(start: Callable[..., Sending], way: str) -> None:
    sending = start(way, "caching")
    image = sending.api.make(DATA)
    assert sending.api.download(image).body == DATA
    answer, sent = sending.sent_by(lambda: sending.api.download(image), "", "truncate")
    size = (sending.service.cache / image).stat().st_size
    assert MIB < size < len(DATA)
    assert answer.body == DATA[:size]
    # The kernel sends from a mapping what it could copy whole; the rest of what is there goes by sendfile().
    rest = sent.pop("sendfile", 0) if way == "mapped" else 0
    assert sent == {way: size - MIB - rest}
    sending.expect_notifications([("INFO", len(DATA)), ("ERROR", size)])
    assert "disconnected after writing only" in sending.service.log()


@pytest.mark.parametrize("way", WAYS)
def test_it_can_be_switched_off(start: Callable[..., Sending], way: str) -> None:
    sending = start(way, disabled="glance_sendfile")
    image = sending.api.make(DATA)
    answer, sent = sending.sent_by(lambda: sending.api.download(image))
    assert (answer.body == DATA, sent) == (True, {})
