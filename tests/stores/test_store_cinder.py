"""glance_store's cinder driver on files and loop devices: patched and unpatched side by side."""

import os
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("glance_store")

import fastio
from tests.conftest import needs_eventlet
from tests.stores.images import MIB

NAMES = ("store_cinder", "image_fairness", "fix_cinder_file_volumes", "fix_cinder_read_errors")


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
