"""``glanceclient_download``: the same bytes and errors over HTTP and HTTPS, read from the socket without a buffer."""

import gzip
import io
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("glanceclient", reason="python-glanceclient is not installed: pip install fastio[client]")

from glanceclient.common import http, progressbar, utils  # noqa: E402
from glanceclient.v2 import client as v2  # noqa: E402

import fastio  # noqa: E402
import tests.green_ssl  # noqa: E402, F401
from fastio.io import unbuffered  # noqa: E402
from tests.conftest import MONKEY_PATCHED  # noqa: E402
from tests.patches.image_api import Image, ImageServer, client, content, image_api, outcome  # noqa: E402
from tests.stores.images import Ticker  # noqa: E402

KIB = 1 << 10
MIB = 1 << 20
NAME = "glanceclient_download"
CHUNK = http.CHUNKSIZE


pytestmark = pytest.mark.usefixtures("own_certificates")


@pytest.fixture
def read_unbuffered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The classes through which bodies were read."""
    found: list[str] = []
    reader = unbuffered.reader
    monkeypatch.setattr(unbuffered, "reader", lambda raw: found.append(type(raw).__name__) or reader(raw))  # type: ignore[func-returns-value]
    return found


def reading(context: ssl.SSLContext | None) -> str:
    return "Gathered" if context is None else "Decrypted"


def chunks(size: int) -> list[int]:
    return [CHUNK] * (size // CHUNK) + [size % CHUNK] * bool(size % CHUNK)


def both(download: Callable[[], Any], **settings_: Any) -> list[Any]:
    """The outcomes of stock and patched."""
    stock = outcome(download)
    with fastio.patched(NAME, strict=True, **settings_):
        return [stock, outcome(download)]


@pytest.mark.parametrize("checked", [True, False])
def test_a_download(
    images: dict[str, Image], server: ImageServer, context: Any, checked: bool, read_unbuffered: list[str]
) -> None:
    data = content(9 * MIB + 12_345)
    images["a"] = Image(data)
    glance = client(server.url, insecure=True)
    stock, patched = both(lambda: glance.images.data("a", do_checksum=checked))
    assert patched == stock == (chunks(len(data)), data, None, None)
    assert read_unbuffered == [reading(context)]
    counts = fastio.metrics().patches[NAME]
    assert (counts.calls, counts.bytes, counts.fallbacks) == (1, len(data), {})
    # One connection for all: it went back to the pool after each download.
    assert {request.connection for request in server.requests} == {0}


@pytest.mark.parametrize("timeout", [600, 30])
def test_through_a_keystone_session_and_with_time_outs(
    images: dict[str, Image], server: ImageServer, context: Any, timeout: int, read_unbuffered: list[str]
) -> None:
    """As nova has it, whose sessions have no time-out; the client's own always has one."""
    from keystoneauth1 import session, token_endpoint

    data = content(5 * MIB + 1)
    images["a"] = Image(data)
    ours = session.Session(auth=token_endpoint.Token(server.url, "token"), verify=False)
    for glance in (v2.Client(server.url, session=ours), client(server.url, insecure=True, timeout=timeout)):
        stock, patched = both(lambda glance=glance: glance.images.data("a"))  # type: ignore[misc]
        assert patched == stock == (chunks(len(data)), data, None, None)
    assert read_unbuffered == [reading(context)] * 2


def test_attributes_and_progress_bar(images: dict[str, Image], server: ImageServer) -> None:
    data = content(2 * MIB + 5)
    images["a"] = Image(data, headers={"x-openstack-request-id": "req-1"})
    glance = client(server.url, insecure=True)
    with fastio.patched(NAME, strict=True):
        body = glance.images.data("a")
        assert (len(body), body.request_ids) == (len(data), ["req-1"])
        assert type(body.wrapped) is utils.IterableWithLength
        first = next(body)
        bar = progressbar.VerboseIteratorWrapper(body, len(body))
        assert first + b"".join(bar) == data
        assert list(body) == []


def test_a_download_that_is_left_half_way(images: dict[str, Image], server: ImageServer) -> None:
    images["a"] = Image(content(12 * MIB))
    images["b"] = Image(b"more")
    glance = client(server.url, insecure=True)
    with fastio.patched(NAME, strict=True):
        for stop in (True, False):
            body = iter(glance.images.data("a"))
            assert len(next(body)) == CHUNK
            if stop:
                body.close()
            del body
            assert b"".join(glance.images.data("b")) == b"more"


FAILURES: dict[str, dict[str, Any]] = {
    "broken off at once": {"answer": {"breaks_off": 0}},
    "broken off": {"answer": {"breaks_off": 2_500_000}},
    "broken off between chunks": {"answer": {"breaks_off": 2 * MIB}},
    "broken off at the end": {"answer": {"breaks_off": 4 * MIB - 1}},
    "not the data": {"record": {"os_hash_algo": "sha512", "os_hash_value": "0" * 128}},
    "not available": {"answer": {"status": "503 Service Unavailable"}},
    "no data": {"answer": {"status": "204 No Content"}, "headers": {"Content-Length": "0"}},
}


@pytest.mark.parametrize("name", list(FAILURES))
def test_failures_are_upstreams(images: dict[str, Image], server: ImageServer, name: str) -> None:
    images["a"] = Image(content(4 * MIB), **FAILURES[name])

    def download() -> Any:
        body = client(server.url, insecure=True).images.data("a")
        return body if body.wrapped is not None else []

    stock, patched = both(download)
    assert patched == stock
    assert name == "no data" or stock[2] is not None


def test_a_server_that_says_nothing_more(images: dict[str, Image], server: ImageServer) -> None:
    hold = threading.Event()
    images["a"] = Image(content(4 * MIB), answer={"hold": hold, "before_hold": 1_500_000})

    def outcomes(timeout: float) -> list[Any]:
        found = both(lambda: client(server.url, insecure=True, timeout=timeout).images.data("a"))
        return [(*each[:3], re.sub(r"port=\d+", "", str(each[3]))) for each in found]

    try:
        # The server has the same time for all that comes before, also on a busy machine.
        for timeout in (0.5, 4, 20):
            stock, patched = outcomes(timeout)
            if patched == stock:
                break
    finally:
        hold.set()
    assert patched == stock
    assert "timed out" in stock[3]


def test_a_slow_server_is_waited_for(images: dict[str, Image], server: ImageServer) -> None:
    """Less than a chunk has arrived, and no more comes for longer than the kernel may gather."""
    hold = threading.Event()
    data = content(2 * MIB + 7)
    images["a"] = Image(data, answer={"hold": hold, "before_hold": 100_000})
    with fastio.patched(NAME, strict=True):
        body = client(server.url, insecure=True).images.data("a")
        timer = threading.Timer(4 * unbuffered.PATIENCE, hold.set)
        timer.start()
        assert b"".join(body) == data
        timer.join()


def test_what_is_left_to_upstream(images: dict[str, Image], server: ImageServer, read_unbuffered: list[str]) -> None:
    data = content(2 * MIB)
    images["chunked"] = Image(data, chunked=100_000)
    images["small"] = Image(data[: 100 * KIB])
    glance = client(server.url, insecure=True)
    for name, image in images.items():
        stock, patched = both(lambda name=name: glance.images.data(name))  # type: ignore[misc]
        assert patched == stock
        assert patched[1] == image.data
    assert read_unbuffered == []
    assert fastio.metrics().patches[NAME].fallbacks == {"framing": 1, "small": 1}


def test_compressed_on_the_way(images: dict[str, Image], server: ImageServer) -> None:
    """urllib3 takes it apart, above the file that is another one."""
    data = content(3 * MIB)
    checks = Image(data).described()
    images["a"] = Image(gzip.compress(data), headers={"Content-Encoding": "gzip"}, record=checks)
    glance = client(server.url, insecure=True)
    stock, patched = both(lambda: glance.images.data("a"))
    assert patched == stock
    assert patched[1] == data


def test_what_the_response_shows_meanwhile(images: dict[str, Image], server: ImageServer) -> None:
    data = content(3 * MIB)
    images["a"] = Image(data)
    glance = client(server.url, insecure=True)
    with fastio.patched(NAME, strict=True):
        response, body = glance.http_client.get("/v2/images/a/file")
        fp = response.raw._fp.fp
        assert isinstance(fp, io.BufferedReader) and not fp.closed
        assert fp.fileno() == fp.raw.fileno() == fp.raw._sock.fileno()
        read = len(next(body))
        assert (response.raw.tell(), response.raw.length_remaining) == (read, len(data) - read)
        rest = b"".join(body)
        assert fp.closed and fp.raw.closed
        assert response.raw.closed and response._content_consumed and len(rest) + read == len(data)


def test_the_mark_is_gone_between_reads(images: dict[str, Image]) -> None:
    images["a"] = Image(content(4 * MIB))
    with image_api(images) as server, fastio.patched(NAME, strict=True):
        response, body = client(server.url).http_client.get("/v2/images/a/file")
        sock = response.raw._fp.fp.raw._sock
        for _ in range(3):
            next(body)
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 1
            assert sock.gettimeout() == 600


@settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
@given(size=st.integers(0, 3 * MIB), breaks_off=st.none() | st.integers(0, 3 * MIB), length=st.booleans())
def test_every_size_and_end(context: Any, size: int, breaks_off: int | None, length: bool) -> None:
    image = Image(content(size), answer={"breaks_off": breaks_off}, chunked=0 if length or breaks_off else 70_000)
    with image_api({"a": image}, context) as server:
        stock, patched = both(lambda: client(server.url, insecure=True).images.data("a"))
    assert patched == stock


@pytest.mark.skipif(not MONKEY_PATCHED, reason="there are greenlets only after monkey_patch()")
def test_others_run_meanwhile(images: dict[str, Image], server: ImageServer) -> None:
    """The server's greenlets send, and then nothing makes the client wait: it yields by itself."""
    from fastio import counters

    images["a"] = Image(content(16 * MIB))
    glance = client(server.url, insecure=True)
    with fastio.patched(NAME, strict=True, yield_bytes="64KiB"):
        body = glance.images.data("a", do_checksum=False)
        counters.reset()
        with Ticker() as ticker:
            assert len(b"".join(body)) == 16 * MIB
    assert counters.yields >= 8
    assert ticker.ticks >= counters.yields


def test_the_command(images: dict[str, Image], tmp_path: pathlib.Path) -> None:
    """``fastio run -- glance image-download``: to a file, to stdout, and a damaged one."""
    data = content(3 * MIB + 1)
    images["good"] = Image(data)
    images["bad"] = Image(data, record={"os_hash_algo": "sha512", "os_hash_value": "0" * 128})
    # Beside this Python, or the distribution's.
    places = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    command = [sys.executable, "-m", "fastio", "run", "--", shutil.which("glance", path=places) or "glance"]
    with image_api(images) as server:

        def glance(*arguments: str) -> subprocess.CompletedProcess[bytes]:
            options = ["--os-image-url", server.url, "--os-auth-token", "token", "--os-image-api-version", "2"]
            return subprocess.run([*command, *options, *arguments], cwd=tmp_path, capture_output=True, timeout=60)

        filed = glance("image-download", "good", "--file", "image", "--progress")
        assert (filed.returncode, filed.stderr) == (0, b"")
        assert (tmp_path / "image").read_bytes() == data
        assert glance("image-download", "good").stdout == data
        damaged = glance("image-download", "bad", "--file", "image")
        assert damaged.returncode == 1
        assert b"Corrupt image download" in damaged.stderr
