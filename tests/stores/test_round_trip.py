"""glance_store as upstream made it, on every backend: what the patches are compared with."""

from __future__ import annotations

import hashlib
import io
import os

import pytest

from benchmarks.backends import BACKENDS

MIB = 1 << 20


#: Those whose driver adds images.
WRITERS = [name for name in BACKENDS if name != "http"]


@pytest.fixture(params=WRITERS)
def writer(request, open_store):
    """A store on each backend that takes images."""
    return open_store(request.param)


@pytest.mark.parametrize("size", [1, 65536, 3 * MIB + 1])
def test_what_is_added_comes_back(writer, size):
    data = os.urandom(size)

    added = writer.add(data)

    assert added.size == size
    assert added.checksum == hashlib.md5(data).hexdigest()
    assert added.multihash == hashlib.sha512(data).hexdigest()
    assert added.metadata["store"] == writer.identifier
    assert writer.size(added.url) == size
    assert writer.read(added.url) == data


def test_an_image_of_unknown_size(writer):
    data = os.urandom(MIB + 1)

    added = writer.add(io.BytesIO(data), size=0)

    assert added.size == len(data)
    assert added.multihash == hashlib.sha512(data).hexdigest()
    assert writer.read(added.url) == data


def test_what_is_placed_is_read(store_backend):
    data = os.urandom(MIB + 1)

    url = store_backend.place(data)

    chunks, size = store_backend.get(url)
    assert size == len(data)
    assert b"".join(chunks) == data


def test_what_is_deleted_is_gone(writer):
    from glance_store import exceptions

    added = writer.add(b"data")

    writer.delete(added.url)

    # A cinder volume that is not there is a BackendException.
    with pytest.raises((exceptions.NotFound, exceptions.BackendException)):
        writer.read(added.url)


def test_http_takes_no_images(http_store):
    from glance_store import exceptions

    with pytest.raises(exceptions.StoreAddDisabled):
        http_store.add(b"data")


def test_cinder_on_a_loop_device(open_store):
    data = os.urandom(3 * MIB + 1)
    store = open_store("cinder", {"device": "loop"})

    added = store.add(io.BytesIO(data), size=0)

    assert store.read(added.url) == data
    assert store.read(added.url, offset=MIB, chunk_size=MIB) == data[MIB : 2 * MIB]


def test_the_stricter_s3_server(open_store):
    data = os.urandom(3 * MIB + 1)
    store = open_store("s3", {"program": "versitygw"}, s3_store_large_object_size=1)

    assert store.read(store.add(data).url) == data


def test_swift_in_segments(open_store):
    """The whole of an image that is a multiple of the segment: others are what a fix of ours is for."""
    size = 2 * 1024 * 1000
    data = os.urandom(size)
    store = open_store("swift", swift_store_large_object_size=1, swift_store_large_object_chunk_size=1)

    added = store.add(data)

    assert added.size == size
    assert store.read(added.url) == data


def test_two_stores_of_one_backend(open_store):
    data = os.urandom(MIB)
    one = open_store("filesystem", identifier="one")
    two = open_store("filesystem", identifier="two", filesystem_store_chunk_size=4096)

    assert one.read(one.add(data).url) == data
    assert {len(chunk) for chunk in two.get(two.add(data).url)[0]} == {4096}


def test_nothing_is_left_in_glance_store(running_backend):
    access = running_backend("filesystem").access()
    from glance_store import location
    from oslo_config import cfg

    from benchmarks.backends.stores import opened

    with opened(access, "passing"):
        assert "passing" in location.SCHEME_TO_CLS_BACKEND_MAP["file"]
        assert cfg.CONF.passing.filesystem_store_datadir

    assert "passing" not in location.SCHEME_TO_CLS_BACKEND_MAP["file"]
    assert "enabled_backends" not in cfg.CONF
    assert cfg.CONF.passing.filesystem_store_datadir is None
