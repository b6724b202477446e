"""``glance_uploads``: what chunked uploads read is what upstream reads, and glance under uWSGI stores every byte."""

import random
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fastio
from benchmarks.backends.glance import Service
from benchmarks.backends.glance_api import Api, sha512
from tests.eventually import until
from tests.glance.sending import start_giving

MIB = 1 << 20


class Requests(ModuleType):
    """Stands for ``uwsgi``, which is a module only within its server: one request in these chunks.

    An exception among them is raised in its turn.
    """

    #: no option is set
    opt: dict[str, Any] = {}

    def __init__(self, chunks: list[Any]) -> None:
        super().__init__("uwsgi")
        self._chunks = list(chunks)

    def chunked_read(self) -> bytes:
        chunk = self._chunks.pop(0) if self._chunks else b""
        if isinstance(chunk, BaseException):
            raise chunk
        return chunk


@pytest.fixture
def wsgi() -> Iterator[Any]:
    """``glance.common.wsgi``, patched; skipped where the installed glance does not append."""
    module = pytest.importorskip("glance.common.wsgi", reason="glance is not installed")
    stock = module._UWSGIChunkFile.read
    if fastio.patch("glance_uploads").outcome("glance_uploads").value != "applied":
        pytest.skip("glance has no _UWSGIChunkFile that keeps a buffer")
    module.stock_read = stock
    yield module
    del module.stock_read
    fastio.unpatch("glance_uploads")
    assert module._UWSGIChunkFile.read is stock


def results(wsgi: Any, read: Callable[..., bytes], chunks: list[Any], sizes: list[Any]) -> list[Any]:
    """Return the result or error of each read, and the data kept after it."""
    requests = Requests(chunks)
    file = wsgi._UWSGIChunkFile()
    found: list[Any] = []
    modules = {"uwsgi": sys.modules.get("uwsgi"), "wsgi": getattr(wsgi, "uwsgi", None)}
    sys.modules["uwsgi"] = requests
    if hasattr(wsgi, "uwsgi"):
        wsgi.uwsgi = requests
    try:
        for size in sizes:
            try:
                data: Any = read(file, *size)
            except OSError as error:
                data = str(error)
            found.append((data, file._buffer))
    finally:
        if hasattr(wsgi, "uwsgi"):
            wsgi.uwsgi = modules["wsgi"]
        if modules["uwsgi"] is None:
            del sys.modules["uwsgi"]
        else:
            sys.modules["uwsgi"] = modules["uwsgi"]
    return found


_CHUNKS = st.lists(
    st.binary(max_size=300) | st.just(b"x" * 70_000) | st.builds(OSError, st.just("timeout")), max_size=20
)
_SIZES = st.lists(
    st.tuples(st.integers(-2, 700) | st.integers(60_000, 200_000) | st.just(MIB) | st.none()) | st.just(()), max_size=20
)


@given(chunks=_CHUNKS, sizes=_SIZES)
@example(chunks=[b"abcd", b"efgh"], sizes=[(4,), (4,), (4,)])
@example(chunks=[b"abcdef"], sizes=[(2,), (2,), (2,), (2,)])
@example(chunks=[b"a" * 10, OSError("timeout"), b"b" * 10], sizes=[(15,), (15,), (15,)])
@example(chunks=[b"a" * (MIB + 7)], sizes=[(None,), (-1,), ()])
def test_each_read_is_upstreams(wsgi: Any, chunks: list[Any], sizes: list[Any]) -> None:
    patched = results(wsgi, wsgi._UWSGIChunkFile.read, chunks, sizes)
    assert patched == results(wsgi, wsgi.stock_read, chunks, sizes)
    assert fastio.metrics().patches["glance_uploads"].calls or not sizes or not chunks


def test_chunked_uploads_are_stored(serve: Callable[..., Service]) -> None:
    api = Api(serve("glance-33", fastio="on").http_port)
    for chunk in (997, 65536, 700_001):
        data = random.Random(chunk).randbytes(2 * MIB + 4321)
        image = api.create()
        assert api.upload(image, (data[start : start + chunk] for start in range(0, len(data), chunk))).status == 204
        assert api.show(image)["os_hash_value"] == sha512(data)
        assert api.download(image).body == data


def broken_upload(service: Service, body: bytes) -> tuple[bytes, str, list[Any]]:
    """Status line, the image's status afterwards and what is left in the store."""
    api = Api(service.http_port)
    image = api.create()
    with api.started_upload(image, body) as sock:
        sock.shutdown(socket.SHUT_WR)
        answer = sock.makefile("rb").read()
    return answer.partition(b"\r\n")[0], api.show(image)["status"], list(service.images.iterdir())


@pytest.mark.parametrize(
    ("options", "body", "named"),
    [
        ({"chunked-input-limit": "65536"}, b"186A0\r\n" + bytes(100_000) + b"\r\n0\r\n\r\n",
         "a chunk has more than 65536 bytes, see uWSGI's chunked-input-limit"),
        ({"socket-timeout": "1"}, b"186A0\r\n" + bytes(1000), "nothing came for 1 s, see uWSGI's"),
    ],
)  # fmt: skip
def test_the_log_names_the_option_that_ends_an_upload(
    serve: Callable[..., Service], tmp_path: Path, options: dict[str, str], body: bytes, named: str
) -> None:
    sending = start_giving(serve, tmp_path, uwsgi=options)
    with sending.api.started_upload(sending.api.create(), body):
        until(lambda: named in sending.service.log(), named)


def test_broken_uploads_end_as_upstreams(serve: Callable[..., Service]) -> None:
    bodies = {
        "ends within a chunk": b"10000\r\n" + b"x" * 65536 + b"\r\n" + b"10000\r\n" + b"x" * 1000,
        "no length": b"10000\r\n" + b"x" * 65536 + b"\r\nno number\r\n",
    }
    stock, patched = serve("glance-33", fastio="off"), serve("glance-33", fastio="on")
    for case, body in bodies.items():
        assert broken_upload(patched, body) == broken_upload(stock, body), case
