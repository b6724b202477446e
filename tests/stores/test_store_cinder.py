"""glance_store's cinder driver on files and loop devices: patched and unpatched side by side."""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("glance_store")

import fastio
from fastio.config import parse_size
from fastio.patches.glance_store import store_cinder
from tests.conftest import needs_eventlet
from tests.stores.images import MIB

NAMES = ("store_cinder", "image_fairness", "fix_cinder_read_errors")


class Device:
    """What ``_open_cinder_volume`` yields, with the sizes that the driver reads and writes."""

    def __init__(self, file: Any, sizes: list[int]) -> None:
        self._file = file
        self._sizes = sizes

    def read(self, size: int) -> bytes:
        self._sizes.append(size)
        return self._file.read(size)

    def write(self, data: bytes) -> int:
        self._sizes.append(len(data))
        return self._file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@pytest.mark.parametrize("chunk", [None, "4KiB", "256KiB", "3MiB", "16MiB"])
def test_chunks_at_the_device(cinder_store: Any, monkeypatch: pytest.MonkeyPatch, chunk: str | None) -> None:
    from glance_store._drivers import cinder as driver

    sizes: list[int] = []
    size = store_cinder.CHUNK if chunk is None else parse_size(chunk)
    data = os.urandom(min(4 * size + 1000, 9 * MIB))
    expected = [min(size, len(data) - offset) for offset in range(0, len(data), size)]
    settings: dict[str, Any] = {} if chunk is None else {"store_chunk_sizes": {"cinder": chunk}}
    with fastio.patched(NAMES, strict=True, **settings):
        wrapped = driver.Store._open_cinder_volume

        @contextlib.contextmanager
        def audited(self: Any, *args: Any) -> Iterator[Any]:
            with wrapped(self, *args) as file:
                yield Device(file, sizes)

        with monkeypatch.context() as patch:
            patch.setattr(driver.Store, "_open_cinder_volume", audited)
            url = cinder_store.add(data).url
            assert sizes == expected
            sizes.clear()
            assert [len(each) for each in cinder_store.get(url)[0]] == expected
            assert sizes == expected


@pytest.fixture
def loop_store(open_store: Callable[..., Any]) -> Any:
    """Volumes that are block devices, where this may be."""
    from benchmarks.backends.base import BackendError

    if os.geteuid() != 0:
        pytest.skip("loop devices need root")
    try:
        return open_store("cinder", {"device": "loop"})
    except BackendError as error:
        pytest.skip(f"no loop devices: {error}")


def test_block_device(loop_store: Any) -> None:
    data = os.urandom(3 * MIB + 1)
    stock = loop_store.add(data)
    with fastio.patched(NAMES, strict=True):
        patched = loop_store.add(data)
        assert patched[1:] == stock[1:]
        assert loop_store.read(patched.url) == loop_store.read(stock.url) == data
        assert loop_store.read(stock.url, offset=MIB - 5, chunk_size=MIB + 9) == data[MIB - 5 : 2 * MIB + 4]


@needs_eventlet
def test_devices_leave_the_hub(loop_store: Any, offloads: list[str]) -> None:
    data = os.urandom(8 * MIB)
    with fastio.patched("store_cinder", strict=True):
        url = loop_store.add(data).url
        assert offloads.count("write") == 8
        # A device that is attached anew has nothing in the page cache.
        assert loop_store.read(url) == data
    assert offloads.count("pread64") > 0
