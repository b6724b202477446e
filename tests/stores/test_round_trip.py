"""glance_store as upstream made it, on what only some backends have."""

import os
from typing import Any

import pytest

from tests.stores.images import MIB

DATA = os.urandom(3 * MIB + 1)


def test_what_is_placed_is_read(store_backend: Any) -> None:
    url = store_backend.place(DATA)
    chunks, size = store_backend.get(url)
    assert (b"".join(chunks), size) == (DATA, len(DATA))


def test_http_takes_no_images(http_store: Any) -> None:
    from glance_store import exceptions

    with pytest.raises(exceptions.StoreAddDisabled):
        http_store.add(b"data")


def test_swift_in_segments(open_store: Any) -> None:
    """The whole of an image that is a multiple of the segment: others are what a fix of ours is for."""
    store = open_store("swift", swift_store_large_object_size=1, swift_store_large_object_chunk_size=1)
    data = DATA[: 2 * 1024 * 1000]
    added = store.add(data)
    assert added.size == len(data)
    assert store.read(added.url) == data


def test_nothing_is_left_in_glance_store(running_backend: Any) -> None:
    access = running_backend("filesystem").access()
    from glance_store import location
    from oslo_config import cfg

    from benchmarks.backends.stores import opened

    with opened(access, "passing"):
        assert "passing" in location.SCHEME_TO_CLS_BACKEND_MAP["file"]
        assert cfg.CONF.passing.filesystem_store_datadir
    assert "passing" not in location.SCHEME_TO_CLS_BACKEND_MAP["file"]
    assert "enabled_backends" not in cfg.CONF
    # Its default is the release's, or the distribution's.
    assert cfg.CONF.passing.filesystem_store_datadir != access["options"]["filesystem_store_datadir"]
