"""A volume that fails in the middle of an image."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("glance_store")

import fastio

store = pytest.importorskip("glance_store._drivers.cinder.store")

NAME = "fix_cinder_read_errors"

if not hasattr(store, "CinderVolumeIterator"):
    pytest.skip("this glance_store does not read ahead", allow_module_level=True)


class Broken:
    """An iterator that fails after some chunks, and knows whether it was closed."""

    def __init__(self, chunks: int, error: BaseException | None) -> None:
        self._left = chunks
        self._error = error
        self.closed = 0

    def __iter__(self) -> Broken:
        return self

    def __next__(self) -> bytes:
        if self._left:
            self._left -= 1
            return b"chunk"
        if self._error is not None:
            raise self._error
        raise StopIteration

    def close(self) -> None:
        self.closed += 1


EIO = OSError(5, "Input/output error")


@pytest.mark.parametrize("chunks", [1, 2, 5])
def test_the_error_comes_after_what_was_read(chunks: int) -> None:
    volume = Broken(chunks, EIO)
    with fastio.patched(NAME, strict=True):
        image = store.CinderVolumeIterator(volume)
        for _ in range(chunks):
            assert not volume.closed
            assert next(image) == b"chunk"
        # Detached at once, as before.
        assert volume.closed == 1
        with pytest.raises(OSError) as caught:
            next(image)
        assert caught.value is EIO
        assert list(image) == []
        image.close()
    assert volume.closed == 1


def test_the_first_chunk_fails_in_get() -> None:
    """Which it does in upstream as well."""
    with fastio.patched(NAME, strict=True), pytest.raises(OSError, match="Input/output error"):
        store.CinderVolumeIterator(Broken(0, EIO))


def test_upstream_hides_it() -> None:
    """When this fails upstream has mended it, and the fix can go."""
    assert list(store.CinderVolumeIterator(Broken(4, EIO))) == [b"chunk"] * 4


@given(chunks=st.integers(0, 6))
def test_a_volume_that_works(chunks: int) -> None:
    def seen() -> tuple[list[bytes], int, int]:
        volume = Broken(chunks, None)
        image = store.CinderVolumeIterator(volume)
        assert iter(image) is image
        found = list(image)
        closed = volume.closed
        image.close()
        return found, closed, volume.closed

    stock = seen()
    with fastio.patched(NAME, strict=True):
        assert seen() == stock


def test_closed_early() -> None:
    volume = Broken(5, EIO)
    with fastio.patched(NAME, strict=True):
        image = store.CinderVolumeIterator(volume)
        next(image)
        image.close()
        image.close()
    assert volume.closed == 1


def test_a_base_exception_goes_through() -> None:
    with fastio.patched(NAME, strict=True):
        image = store.CinderVolumeIterator(Broken(1, KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            next(image)


def test_iterators_that_exist_already() -> None:
    image = store.CinderVolumeIterator(Broken(2, EIO))
    with fastio.patched(NAME, strict=True):
        assert next(image) == b"chunk"
        assert next(image) == b"chunk"
        with pytest.raises(OSError, match="Input/output error"):
            next(image)


def test_a_device_that_fails(cinder_store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the driver's ``get()``: EIO at the fifth chunk of the device."""
    data = os.urandom(64 * 1024)
    url = cinder_store.add(data).url
    read = store.Store._cinder_volume_data_iterator

    def failing(self: Any, *args: Any, **kwargs: Any) -> Iterator[bytes]:
        for number, chunk in enumerate(read(self, *args, **{**kwargs, "chunk_size": 8 * 1024})):
            if number == 4:
                raise EIO
            yield chunk

    monkeypatch.setattr(store.Store, "_cinder_volume_data_iterator", failing)
    # Upstream: half of the image, and no word of it.
    assert b"".join(cinder_store.get(url)[0]) == data[: 32 * 1024]
    with fastio.patched((NAME, "image_fairness"), strict=True):
        got = []
        with pytest.raises(OSError, match="Input/output error"):
            got.extend(cinder_store.get(url)[0])
        assert fastio.metrics().patches[NAME].calls == 1
        assert b"".join(got) == data[: 32 * 1024]
