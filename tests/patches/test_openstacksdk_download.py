"""``openstacksdk_download``: the same bytes, files, pieces and errors, read 1 MiB at a time."""

import io
import pathlib
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("openstack", reason="openstacksdk is not installed: pip install '.[client]'")

import openstack  # noqa: E402
import openstack.object_store.v1._proxy  # noqa: E402

import fastio  # noqa: E402
import tests.green_ssl  # noqa: E402, F401
from tests.patches.cloud import OBJECT, Cloud  # noqa: E402
from tests.patches.image_api import Image, image_api  # noqa: E402
from tests.stores.http_server import Server  # noqa: E402
from tests.stores.images import content  # noqa: E402

KIB = 1 << 10
MIB = 1 << 20
NAME = "openstacksdk_download"

pytestmark = pytest.mark.usefixtures("own_certificates")


class File(io.BytesIO):
    """Notes the sizes of what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def write(self, data: Any, /) -> int:
        self.sizes.append(len(data))
        return super().write(data)


def streamed(cloud: Cloud, file: File, *size: int) -> None:
    for piece in cloud.object_store.stream_object(OBJECT, "a", *size):
        file.write(piece)


@dataclass
class Way:
    """How a program downloads ``a``."""

    download: Callable[[Cloud, File], Any]
    #: bytes of the pieces that the file gets, from stock and patched
    stock: int
    patched: int
    #: bytes that are read at a time, patched
    read: int = MIB


WAYS = {
    "object": Way(lambda cloud, file: cloud.object_store.get_object(OBJECT, "a", outfile=file), 1024, MIB),
    "object, pieces of 100,000 bytes": Way(lambda cloud, file: cloud.object_store.get_object(
        OBJECT, "a", 100_000, file), 100_000, 100_000, 100_000),
    "object, streamed": Way(streamed, 1024, 1024),
    "object, streamed in pieces of 3,000 bytes": Way(lambda cloud, file: streamed(cloud, file, 3000), 3000, 3000, 3000),
    "image": Way(lambda cloud, file: cloud.image.download_image("a", stream=True, output=file), MIB, MIB),
    "image save": Way(lambda cloud, file: cloud.image.download_image(
        "a", stream=True, output=file, chunk_size=1024), 1024, MIB),
}  # fmt: skip


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest) -> Way:
    return WAYS[request.param]


def outcome(way: Way, server: Server, timeout: float | None = None) -> tuple[Any, File]:
    """How it ends, and the file then."""
    file = File()
    try:
        way.download(Cloud(server, timeout), file)
    except Exception as error:
        return (type(error), re.sub(r"port=\d+|0x[0-9a-f]+|\d+ (bytes read|more expected)", "", str(error))), file
    return None, file


def both(way: Way, server: Server, timeout: float | None = None) -> tuple[Any, bytes, bytes]:
    """How stock and patched end, which is the same, and what they have in the file then."""
    stock, kept = outcome(way, server, timeout)
    with fastio.patched(NAME, strict=True):
        patched, file = outcome(way, server, timeout)
    assert patched == stock
    assert set(kept.sizes[:-1]) <= {way.stock} and set(file.sizes[:-1]) <= {way.patched}
    return stock, kept.getvalue(), file.getvalue()


@settings(max_examples=25)
@given(
    size=st.integers(0, 3 * MIB) | st.sampled_from([0, 1, MIB, 2 * MIB]),
    breaks_off=st.none() | st.integers(0, 3 * MIB),
    name=st.sampled_from(list(WAYS)),
)
def test_every_size_and_end(context: Any, size: int, breaks_off: int | None, name: str) -> None:
    way = WAYS[name]
    image = Image(content(size), answer={"breaks_off": breaks_off})
    with image_api({"a": image}, context) as server:
        error, stock, patched = both(way, server)
    assert (error is None) == (breaks_off is None or breaks_off >= size)
    assert image.data.startswith(patched)
    # A part that breaks off is lost as far as it does not fill a read.
    sent = size if breaks_off is None else min(size, breaks_off)
    assert (len(stock), len(patched)) == (sent, sent) if error is None else sent - len(patched) < way.read


def test_a_download_counts_its_calls_and_bytes(way: Way, images: dict[str, Image], server: Server) -> None:
    images["a"] = Image(content(100))
    both(way, server)
    assert fastio.metrics().patches[NAME].calls == int(way.stock == 1024)


@pytest.mark.parametrize("more", [{"answer": {"chunked": 100_000}}, {"answer": {"status": "403 Forbidden"}}], ids=str)
def test_small_and_odd_answers_are_as_upstreams(
    way: Way, images: dict[str, Image], server: Server, more: dict[str, Any]
) -> None:
    images["a"] = Image(content(300 * KIB), **more)
    stock, kept = outcome(way, server)
    with fastio.patched(NAME, strict=True):
        patched, file = outcome(way, server)
    assert (patched, file.getvalue()) == (stock, kept.getvalue())


def test_a_server_that_says_nothing_more(way: Way, images: dict[str, Image], server: Server) -> None:
    hold = threading.Event()
    images["a"] = Image(content(4 * MIB), answer={"hold": hold, "before_hold": 1_500_000})
    try:
        # The server has the same time for all that comes before, also on a busy machine.
        for timeout in (0.5, 4, 20):
            error, _, patched = both(way, server, timeout)
            if len(patched) == 1_500_000 // way.read * way.read:
                break
    finally:
        hold.set()
    assert "timed out" in error[1]
    assert images["a"].data.startswith(patched) and len(patched) == 1_500_000 // way.read * way.read


def test_a_stream_that_is_left_half_way(images: dict[str, Image], server: Server) -> None:
    images["a"] = Image(content(12 * MIB))
    images["b"] = Image(b"more")
    with fastio.patched(NAME, strict=True):
        store = Cloud(server).object_store
        for stop in (True, False):
            body = store.stream_object(OBJECT, container="a")
            assert len(next(body)) == 1024
            if stop:
                body.close()
            del body
            assert b"".join(store.stream_object(OBJECT, container="b")) == b"more"


def test_other_downloads_are_unchanged(images: dict[str, Image], server: Server, tmp_path: pathlib.Path) -> None:
    data = content(2 * MIB)
    images["a"] = Image(data, headers={"X-Object-Meta-Colour": "blue"})
    path = str(tmp_path / "file")
    with fastio.patched(NAME, strict=True):
        cloud = Cloud(server)
        assert cloud.object_store.download_object(OBJECT, container="a") == data
        response = cloud.image.download_image("a", stream=True)
        assert b"".join(response.iter_content(MIB)) == data
        assert fastio.metrics().patches[NAME].calls == 0
        found = cloud.object_store.get_object(OBJECT, "a", 4096, path, True)
        assert type(found).__module__ == "openstack.object_store.v1.obj"
        assert found.metadata in ({"colour": "blue"}, {"Colour": "blue"})
        assert pathlib.Path(path).read_bytes() == data
        with pytest.raises(FileNotFoundError):
            cloud.object_store.get_object(OBJECT, container="a", outfile=str(tmp_path / "none" / "object"))
        with pytest.raises(TypeError, match="chunk_size must be an int"):
            cloud.object_store.get_object(OBJECT, container="a", resp_chunk_size="1k", outfile=path)


def test_a_wrong_checksum(images: dict[str, Image], server: Server) -> None:
    wrong = {"checksum": "0" * 32, "os_hash_algo": "sha512", "os_hash_value": "0" * 128}
    images["a"] = Image(content(3 * MIB), record=wrong, headers={"Content-MD5": "0" * 32})
    error, stock, patched = both(WAYS["image save"], server)
    assert (error[0], "checksum mismatch" in error[1], patched) == (openstack.exceptions.SDKException, True, stock)
