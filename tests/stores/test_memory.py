"""An upload to each store holds little of its image."""

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("glance_store")

import fastio
from benchmarks.harness.worker import peak, reset_peak
from tests.stores.images import MIB
from tests.stores.test_contract import DRIVERS

#: Bytes of an image, and how many of them an upload may hold.
SIZE, MOST = 160 * MIB, 64 * MIB
#: glance_store's s3 driver holds a part for each thread, the next one, and those whose threads are about to end: about
#: half of :data:`MOST` here, and more than twice as much by default, with ten threads and parts of 10 MiB.
OPTIONS: dict[str, dict[str, Any]] = {"s3": {"s3_store_thread_pools": 4, "s3_store_large_object_chunk_size": 5}}


class Endless:
    """An image file that holds nothing but its next bytes."""

    def __init__(self, size: int) -> None:
        self._left = size

    def read(self, size: int) -> bytes:
        data = bytes(min(size, self._left))
        self._left -= len(data)
        return data


@pytest.mark.parametrize("driver", [driver for driver in DRIVERS if driver.adds], ids=str)
def test_an_upload_holds_little_of_its_image(open_store: Callable[..., Any], driver: Any) -> None:
    if not reset_peak():
        pytest.skip("the kernel does not forget a peak")
    with fastio.patched():
        store = open_store(driver.backend or driver.name, **OPTIONS.get(driver.name, {}))
        # The first upload makes connections and modules that stay.
        store.delete(store.add(Endless(16 * MIB), size=16 * MIB).url)
        reset_peak()
        before = peak()
        added = store.add(Endless(SIZE), size=SIZE)
        assert peak() - before < MOST
        assert store.size(added.url) == SIZE
        store.delete(added.url)
