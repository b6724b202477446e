"""Tests of each driver that uses HTTP through requests: large chunks, few wake-ups."""

import io
from typing import Any

import pytest

pytest.importorskip("glance_store")
pytest.importorskip("requests")

import fastio  # noqa: E402
from fastio.io import lowwater  # noqa: E402
from tests.stores.http_server import stock_block  # noqa: E402
from tests.stores.images import KIB, MIB, content, sizes  # noqa: E402

CHUNK = 100_000
#: Bytes of a chunk of upstream's, of an image of unknown size.
STOCK = 64 * KIB
#: ``swift_store_large_object_chunk_size`` = 1, in bytes.
SEGMENT = 1000 * 1024


def patched(driver: str, chunk: int | None = CHUNK) -> Any:
    """The driver's patch, with that setting."""
    return fastio.patched(f"store_{driver}", store_chunk_sizes=f"{driver}={chunk}" if chunk else "")


@pytest.mark.parametrize("driver", ["http", "swift"])
def test_the_kernel_gathers_a_chunk(open_store: Any, marks: list[int], driver: str) -> None:
    store = open_store(driver)
    url = store.place(content(8 * MIB))
    with fastio.patched(f"store_{driver}"):
        store.read(url)
    counts = fastio.metrics().patches[f"store_{driver}"]
    assert (counts.bytes, counts.fallbacks) == (8 * MIB, {})
    assert marks[:8] == [lowwater.MOST] * 7 + [0]
    marks.clear()
    store.read(url)
    assert marks == []


@pytest.mark.parametrize("driver", ["swift", "vmware"])
def test_the_blocks_of_an_upload(open_store: Any, sent: list[int], driver: str) -> None:
    store, data = open_store(driver), content(3 * MIB + 2000)
    with patched(driver):
        url = store.add(data).url
        assert sent == sizes(len(data), CHUNK)
        assert store.read(url) == data
    sent.clear()
    store.add(data)
    assert set(sent[:-1]) == {stock_block()}


@pytest.mark.parametrize(
    ("driver", "options", "parts"),
    [
        ("swift", {"swift_store_large_object_chunk_size": 1}, (SEGMENT, 300_000)),
        ("vmware", {}, (3 * MIB + 2000,)),
    ],
    ids=["swift", "vmware"],
)
@pytest.mark.parametrize("chunk", [CHUNK, None])
def test_the_chunks_of_an_upload_of_unknown_size(
    open_store: Any, sent: list[int], driver: str, options: dict[str, Any], parts: tuple[int, ...], chunk: int | None
) -> None:
    store, data = open_store(driver, **options), content(sum(parts))
    with patched(driver, chunk):
        url = store.add(io.BytesIO(data)).url
        pieces = [each for part in parts for each in sizes(part, chunk or 256 * KIB)]
        # requests before 2.32 sends the frame by itself.
        assert sent in (pieces, [len(b"%x\r\n\r\n" % each) + each for each in pieces])
        assert store.read(url) == data
    sent.clear()
    store.add(io.BytesIO(data))
    assert max(sent) in (STOCK, STOCK + len(b"10000\r\n\r\n"))
