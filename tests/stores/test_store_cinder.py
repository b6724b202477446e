"""glance_store's cinder driver on files and loop devices: patched and unpatched side by side."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

pytest.importorskip("glance_store")

import fastio
from fastio.concurrency import offload
from fastio.config import parse_size
from fastio.patches.glance_store import store_cinder
from tests.conftest import needs_eventlet
from tests.stores.test_image_fairness import Ticker

KIB = 1 << 10
MIB = 1 << 20
CHUNK = 16 * KIB
NAMES = ("store_cinder", "image_fairness", "fix_cinder_read_errors")


class Source:
    """An image file that has nothing but ``read``, and tells what was asked of it."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)
        self.sizes: list[int] = []

    def read(self, size: int = -1) -> bytes:
        self.sizes.append(size)
        return self._file.read(size)


def outcome(store: Any, data: bytes, size: int, offset: int, length: int | None) -> Any:
    """All that a caller sees of one image's life."""
    from glance_store import exceptions

    verified: list[bytes] = []

    class Verifier:
        update = verified.append

    try:
        added = store.add(Source(data), size=size, verifier=Verifier())
    except exceptions.GlanceStoreException as error:
        return type(error), str(error).partition(", got")[0]
    image, whole = store.get(added.url)
    found = {
        "added": added[1:],
        "read": b"".join(image) == data,
        "sizes": (whole, store.size(added.url)),
        "verified": b"".join(verified) == data,
    }
    if offset < len(data):
        part, part_size = store.get(added.url, offset=offset, chunk_size=length)
        found["part"] = (b"".join(part), part_size)
    store.delete(added.url)
    with pytest.raises(exceptions.BackendException, match="could not be found"):
        store.get(added.url)
    return found


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    chunks=st.integers(0, 5),
    rest=st.sampled_from([-1, 0, 1, 4097]),
    announced=st.sampled_from([0, 0, 0, -1, 1]),
    offset=st.integers(0, 3 * CHUNK),
    length=st.one_of(st.none(), st.integers(1, 3 * CHUNK)),
    seed=st.binary(min_size=1, max_size=7),
)
@example(chunks=3, rest=0, announced=0, offset=CHUNK, length=CHUNK, seed=b"ab")
def test_as_unpatched(
    cinder_store: Any, chunks: int, rest: int, announced: int, offset: int, length: int | None, seed: bytes
) -> None:
    data = seed * (max(1, chunks * CHUNK + rest) // len(seed) + 1)
    size = len(data) + announced
    stock = outcome(cinder_store, data, size, offset, length)
    with fastio.patched(NAMES, strict=True, store_chunk_sizes={"cinder": CHUNK}, yield_bytes=3 * CHUNK):
        assert outcome(cinder_store, data, size, offset, length) == stock


def test_unknown_size(cinder_store: Any) -> None:
    data = os.urandom(5 * CHUNK + 7)
    stock = cinder_store.add(Source(data), size=0)
    with fastio.patched(NAMES, strict=True, store_chunk_sizes={"cinder": CHUNK}):
        patched = cinder_store.add(Source(data), size=0)
        assert patched[1:] == stock[1:]
        assert cinder_store.size(patched.url) == cinder_store.size(stock.url) == len(data)
        assert cinder_store.read(patched.url) == data


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
    from glance_store._drivers.cinder import store as driver

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


def test_setting_and_stock(cinder_store: Any) -> None:
    driver = cinder_store.driver
    assert (driver.READ_CHUNKSIZE, driver.WRITE_CHUNKSIZE) == (4 * MIB, 4 * MIB)
    with fastio.patched(NAMES, strict=True):
        assert (driver.READ_CHUNKSIZE, driver.WRITE_CHUNKSIZE) == (store_cinder.CHUNK, store_cinder.CHUNK)
    with fastio.patched(NAMES, strict=True, store_chunk_size="16MiB"):
        assert (driver.READ_CHUNKSIZE, driver.WRITE_CHUNKSIZE) == (16 * MIB, 16 * MIB)
    assert (driver.READ_CHUNKSIZE, driver.WRITE_CHUNKSIZE) == (4 * MIB, 4 * MIB)


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
def test_devices_leave_the_hub(loop_store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("eventlet").sleep(0)
    names: list[str] = []
    run = offload.run

    def noting(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        names.append(call.__name__)
        return run(call, *args, **kwargs)

    data = os.urandom(8 * MIB)
    with fastio.patched("store_cinder", strict=True), Ticker() as ticker:
        monkeypatch.setattr(offload, "run", noting)
        url = loop_store.add(data).url
        assert names.count("write") == 8
        written = ticker.ticks
        # A device that is attached anew has nothing in the page cache.
        assert loop_store.read(url) == data
    assert names.count("pread64") > 0
    assert written >= 8 and ticker.ticks > written


@needs_eventlet
def test_a_time_out_while_reading(cinder_store: Any) -> None:
    """The volume is detached, and the image can be read again."""
    import eventlet

    data = os.urandom(40 * CHUNK)
    url = cinder_store.add(data).url

    class TimeIsOver(Exception):
        pass

    current = eventlet.getcurrent()
    with fastio.patched(NAMES, strict=True, store_chunk_sizes={"cinder": CHUNK}, yield_bytes=CHUNK):
        image, _ = cinder_store.get(url)
        next(image)
        eventlet.spawn_n(current.throw, TimeIsOver())
        with pytest.raises(TimeIsOver):
            list(image)
        image.close()
        assert cinder_store.read(url) == data
