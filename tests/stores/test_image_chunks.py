"""``image_chunks``: the chunk size of ``chunkreadable()`` and ``chunkiter()`` where the driver gives none."""

import inspect
import io
from typing import Any

import pytest

utils = pytest.importorskip("glance_store.common.utils")

import fastio  # noqa: E402

NAME = "image_chunks"
STOCK = 64 * 1024

functions = pytest.mark.parametrize("name", ["chunkreadable", "chunkiter"])


def lengths(name: str, *arguments: Any, **named: Any) -> list[int]:
    """The sizes of the chunks of 200,000 bytes."""
    function = getattr(utils, name)
    return [len(chunk) for chunk in function(io.BytesIO(bytes(200_000)), *arguments, **named)]


@functions
def test_the_setting_takes_the_place_of_the_default(name: str) -> None:
    with fastio.patched(NAME, store_chunk_size=100_000):
        assert lengths(name) == [100_000, 100_000]
    assert lengths(name) == [STOCK, STOCK, STOCK, 200_000 - 3 * STOCK]


@functions
def test_what_the_driver_says_counts(name: str) -> None:
    with fastio.patched(NAME, store_chunk_size=100_000):
        assert lengths(name, 150_000) == lengths(name, chunk_size=150_000) == [150_000, 50_000]


@functions
def test_without_the_setting_nothing_changes(name: str) -> None:
    with fastio.patched(NAME, store_chunk_sizes={"swift": 100_000}):
        assert lengths(name) == [STOCK, STOCK, STOCK, 200_000 - 3 * STOCK]
        assert inspect.signature(getattr(utils, name)).parameters["chunk_size"].default == STOCK


def test_an_iterator_is_handed_on() -> None:
    iterator = iter([b"a", b"b"])
    with fastio.patched(NAME, store_chunk_size=100_000):
        assert utils.chunkreadable(iterator) is iterator
        assert utils.chunkreadable(iter=iterator) is iterator
        assert list(utils.chunkiter(fp=io.BytesIO(b"abc"))) == [b"abc"]
