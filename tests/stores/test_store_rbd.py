"""glance_store's rbd driver on a real Ceph: patched and unpatched side by side."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("glance_store")

import fastio
from fastio.io import sparse
from fastio.patches.glance_store import store_rbd
from tests.conftest import MONKEY_PATCHED
from tests.outcome import outcome
from tests.stores.images import KIB, MIB, ImageFile

NAMES = ("store_rbd", "image_fairness")


class Audited:
    """The module ``rbd``, whose images note ``(call, offset or size, length)``."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.calls: list[tuple[Any, ...]] = []
        #: stands for librbd's own ``write`` where it is given
        self.write: Callable[..., Any] | None = None
        noted = ("read", "aio_read", "write", "aio_write", "resize")
        self.Image = type("Image", (library.Image,), {name: self._noting(name) for name in noted})

    def _noting(self, name: str) -> Callable[..., Any]:
        call = getattr(self._library.Image, name)

        def method(image: Any, first: Any, *rest: Any) -> Any:
            if name == "resize":
                self.calls.append((name, first))
            else:
                self.calls.append((name, *((rest[0], len(first)) if name.endswith("write") else (first, rest[0]))))
            if name == "write" and self.write is not None:
                return self.write(first, *rest)
            return call(image, first, *rest)

        return method

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def lengths(self, *kinds: str) -> list[int]:
        return [call[2] for call in self.calls if call[0] in kinds]


@pytest.fixture
def audited(ceph_store: Any, monkeypatch: pytest.MonkeyPatch) -> Audited:
    from glance_store._drivers import rbd

    library = Audited(rbd.rbd)
    monkeypatch.setattr(rbd, "rbd", library)
    return library


def on_ceph(store: Any, url: str, look: Callable[[Any, Any], Any]) -> Any:
    """``look(library, image)`` of the image behind ``url``, by a separate connection."""
    from glance_store._drivers import rbd

    driver = store.driver
    _, _, rest = url.partition("rbd://")
    _, pool, image, _ = rest.split("/")
    with (
        driver.get_connection(driver.conf_file, driver.user) as client,
        client.open_ioctx(pool) as ioctx,
        rbd.rbd.Image(ioctx, image, read_only=True) as opened,
    ):
        return look(rbd.rbd, opened)


def facts(store: Any, url: str) -> dict[str, Any]:
    """Return the visible properties of an image but its data."""

    def look(library: Any, image: Any) -> dict[str, Any]:
        extents: list[tuple[int, int, bool]] = []
        image.diff_iterate(0, image.size(), None, lambda *extent: extents.append(extent))
        stat = image.stat()
        return {
            "size": stat["size"],
            "order": stat["order"],
            "snapshots": [(each["name"], each["size"]) for each in image.list_snaps()],
            "protected": image.is_protected_snap("snap"),
            "features": image.features(),
            "holes": sum(length for _, length, exists in extents if exists),
        }

    return on_ceph(store, url, look)


def images(store: Any) -> list[str]:
    from glance_store._drivers import rbd

    driver = store.driver
    with driver.get_connection(driver.conf_file, driver.user) as client, client.open_ioctx(driver.pool) as ioctx:
        return rbd.rbd.RBD().list(ioctx)


CHUNK = 16 * KIB


@pytest.mark.parametrize("chunk", ["4KiB", "64KiB", "1MiB", "3MiB", "16MiB"])
def test_chunks_at_librbd(ceph_store: Any, audited: Audited, chunk: str) -> None:
    from fastio.config import parse_size

    size = parse_size(chunk)
    data = os.urandom(min(5 * size + 1000, 9 * MIB))
    with fastio.patched(NAMES, strict=True, store_chunk_sizes={"rbd": chunk}):
        source = ImageFile(data)
        url = ceph_store.add(source, size=len(data)).url
        assert set(source.asked) == {size}
        expected = [min(size, len(data) - offset) for offset in range(0, len(data), size)]
        assert audited.lengths("aio_write", "write") == expected
        assert [len(chunk) for chunk in ceph_store.get(url)[0]] == expected
        assert audited.lengths("aio_read", "read") == expected
    assert audited.lengths("aio_write") == expected
    assert audited.lengths("aio_read") == (expected if MONKEY_PATCHED else [])


def test_no_request_outlives_its_chunk(ceph_store: Any) -> None:
    """Else the chunks of an image would fill the memory until the next garbage collection."""
    data = os.urandom(6 * MIB + 5)
    gc.collect()
    gc.disable()
    try:
        with fastio.patched(NAMES, strict=True, store_chunk_sizes={"rbd": "1MiB"}):
            assert ceph_store.read(ceph_store.add(data).url) == data
        assert [found for found in gc.get_objects() if type(found) is store_rbd._Request] == []
    finally:
        gc.enable()


@pytest.mark.parametrize("option", [None, 1, 8, 5])
@pytest.mark.parametrize("ours", [None, "64KiB", "3MiB", "32MiB"])
def test_object_size_is_that_of_the_option(open_store: Any, option: int | None, ours: str | None) -> None:
    options = {} if option is None else {"rbd_store_chunk_size": option}
    store = open_store("ceph", **options)
    data = os.urandom(100 * KIB)
    stock = facts(store, store.add(data).url)
    sizes: dict[str, Any] = {} if ours is None else {"store_chunk_sizes": {"rbd": ours}}
    with fastio.patched(NAMES, strict=True, **sizes):
        assert facts(store, store.add(data).url) == stock
    assert stock["order"] == {None: 23, 1: 20, 8: 23, 5: 22}[option]


def test_unknown_size_grows_as_before(open_store: Any, audited: Audited) -> None:
    store = open_store("ceph", identifier="small", rbd_store_chunk_size=1)
    data = os.urandom(11 * MIB + 77)
    url = store.add(ImageFile(data), size=0).url
    stock = [call for call in audited.calls if call[0] == "resize"]
    audited.calls.clear()
    with fastio.patched(NAMES, strict=True, store_chunk_sizes={"rbd": "256KiB"}):
        patched_url = store.add(ImageFile(data), size=0).url
        resizes = [call for call in audited.calls if call[0] == "resize"]
        assert store.read(patched_url) == data
    assert resizes == stock == [("resize", 2 * MIB), ("resize", 6 * MIB), ("resize", 14 * MIB), ("resize", len(data))]
    assert facts(store, patched_url) == facts(store, url)


@pytest.mark.parametrize("known", [True, False])
def test_thin_provisioning(open_store: Any, audited: Audited, known: bool) -> None:
    store = open_store("ceph", identifier="thin", rbd_store_chunk_size=1, rbd_thin_provisioning=True)
    data = bytes(3 * MIB) + os.urandom(MIB) + bytes(2 * MIB) + b"x" + bytes(2 * MIB)
    size = len(data) if known else 0
    url = store.add(ImageFile(data), size=size).url
    with fastio.patched(NAMES, strict=True):
        patched_url = store.add(ImageFile(data), size=size).url
        assert store.read(patched_url) == data
    assert audited.lengths("aio_write") == audited.lengths("write") == [MIB, MIB]
    assert facts(store, patched_url) == facts(store, url)


def test_a_pool_that_is_full(ceph_store: Any, audited: Audited, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that fails behind is tried again in the foreground, and librbd's exception ends the upload as before."""
    from glance_store import exceptions

    before = images(ceph_store)

    def full(data: bytes, offset: int, *flags: Any) -> int:
        # Another one each time: the traceback of one that is kept would keep librbd's images.
        raise audited.NoSpace("no space", errno=28)

    audited.write = full
    monkeypatch.setattr(store_rbd._Request, "wait", lambda self: self.wait_natively() or -28)
    with fastio.patched(NAMES, strict=True, store_chunk_sizes={"rbd": CHUNK}), pytest.raises(exceptions.StorageFull):
        ceph_store.add(os.urandom(3 * CHUNK))
    assert images(ceph_store) == before
    assert audited.lengths("write") == [CHUNK]


@pytest.mark.parametrize("taken", [0, 1, 2, 3])
def test_a_consumer_that_stops(ceph_store: Any, audited: Audited, taken: int) -> None:
    """Nothing is read that is not asked for."""
    data = os.urandom(20 * CHUNK)
    url = ceph_store.add(data).url
    audited.calls.clear()
    with fastio.patched(NAMES, strict=True, store_chunk_sizes={"rbd": CHUNK}):
        iterator = iter(ceph_store.get(url)[0])
        assert b"".join(next(iterator) for _ in range(taken)) == data[: taken * CHUNK]
        iterator.close()
        assert list(iterator) == []
        assert len(audited.lengths("aio_read", "read")) == taken
        assert ceph_store.read(url) == data


# --- The images that read without holding the hub and write behind, without Ceph


class Completion:
    def __init__(self, image: Image, work: Callable[[], int], done: Callable[..., None]) -> None:
        self._image = image
        self._done = done
        self._work = work
        self._result: int | None = None

    def wait_for_complete_and_cb(self) -> None:
        if self._result is None:
            self._result = self._work()
            data = self._image.found.pop(self, None)
            self._done(self, data)
            self._image.under_way -= 1

    def get_return_value(self) -> int:
        assert self._result is not None
        return self._result


class Image:
    """As rbd.Image of bytes in memory; what is under way is done when it is waited for, and can be made to fail."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.found: dict[Completion, bytes] = {}
        self.under_way = 0
        self.most = 0
        self.failing: set[int] = set()
        self.broken: set[int] = set()
        self.calls: list[Any] = []
        self.closed = False

    def size(self) -> int:
        return len(self.data)

    def resize(self, size: int) -> None:
        assert not self.under_way
        self.data = self.data[:size] + bytes(max(0, size - len(self.data)))

    def create_snap(self, name: str) -> None:
        assert not self.under_way
        self.calls.append(("create_snap", bytes(self.data)))

    def read(self, offset: int, length: int) -> bytes:
        assert not self.closed
        self.calls.append(("read", offset, length))
        if offset in self.broken:
            raise OSError(5, f"read at {offset}")
        return bytes(self.data[offset : offset + length])

    def write(self, data: bytes, offset: int) -> int:
        assert not self.closed
        self.calls.append(("write", offset, len(data)))
        if offset in self.broken or offset + len(data) > len(self.data):
            raise OSError(28, f"write at {offset}")
        self.data[offset : offset + len(data)] = data
        return len(data)

    def _start(self, work: Callable[[], int], done: Any) -> Completion:
        assert not self.closed
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        return Completion(self, work, done)

    def aio_read(self, offset: int, length: int, done: Any) -> Completion:
        self.calls.append(("aio_read", offset, length))

        def work() -> int:
            if offset in self.failing:
                return -5
            self.found[completion] = bytes(self.data[offset : offset + length])
            return len(self.found[completion])

        completion = self._start(work, done)
        return completion

    def aio_write(self, data: bytes, offset: int, done: Any) -> Completion:
        self.calls.append(("aio_write", offset, len(data)))

        def work() -> int:
            if offset in self.failing:
                return -28
            self.data[offset : offset + len(data)] = data
            return 0

        return self._start(work, done)

    def __enter__(self) -> Image:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        assert not self.under_way
        self.closed = True


def in_chunks(size: int, chunk: int) -> Iterator[tuple[int, int]]:
    for offset in range(0, size, chunk):
        yield offset, min(chunk, size - offset)


OFFSETS = st.sets(st.integers(0, 250), max_size=8)


@given(
    size=st.integers(0, 250),
    # Each goes on where the one before has ended, or begins elsewhere.
    runs=st.lists(
        st.tuples(st.none() | st.integers(0, 250), st.integers(1, 25), st.integers(1, 12)), min_size=1, max_size=6
    ),
    failing=OFFSETS,
    broken=OFFSETS,
)
def test_green_reads_are_those_of_the_image(
    size: int, runs: list[tuple[int | None, int, int]], failing: set[int], broken: set[int]
) -> None:
    """In any order, also beyond the end, it is what ``read`` gives, and an error comes at its own call."""
    data = bytes(range(size))
    image, plain = Image(data), Image(data)
    image.failing = failing | broken
    image.broken = plain.broken = broken
    with store_rbd.GreenReads(image) as green:
        at = 0
        for begin, length, count in runs:
            at = at if begin is None else begin
            for _ in range(count):
                assert outcome(partial(green.read, at, length)) == outcome(partial(plain.read, at, length))
                at += length
    assert image.closed
    assert image.most <= 1


@given(data=st.binary(max_size=300), chunk=st.integers(1, 60), failing=st.sets(st.integers(0, 300), max_size=4))
def test_writes_behind_reach_the_image_in_order(data: bytes, chunk: int, failing: set[int]) -> None:
    image = Image(bytes(len(data)))
    image.failing = {offset for offset in failing if offset % chunk == 0}
    with store_rbd.WriteBehind(image) as behind:
        for offset, length in in_chunks(len(data), chunk):
            assert behind.write(data[offset : offset + length], offset) == length
        behind.create_snap("snap")
        assert image.calls[-1] == ("create_snap", data)
    assert image.closed
    assert image.most <= store_rbd.BEHIND


@given(data=st.binary(min_size=1, max_size=300), chunk=st.integers(1, 60), growth=st.integers(1, 90))
def test_write_behind_of_unknown_size(data: bytes, chunk: int, growth: int) -> None:
    image = Image()
    with store_rbd.WriteBehind(image) as behind:
        for offset, length in in_chunks(len(data), chunk):
            while image.size() < offset + length:
                behind.resize(image.size() + growth)
            behind.write(data[offset : offset + length], offset)
        behind.resize(len(data))
    assert bytes(image.data) == data


@pytest.mark.parametrize("broken", [0, 10, 20, 90])
@pytest.mark.parametrize("end", ["create_snap", "exit"])
def test_write_errors_are_never_lost(broken: int, end: str) -> None:
    image = Image(bytes(100))
    image.failing = image.broken = {broken}
    with pytest.raises(OSError, match=f"write at {broken}"), store_rbd.WriteBehind(image) as behind:
        for offset in range(0, 100, 10):
            behind.write(b"x" * 10, offset)
        if end == "create_snap":
            behind.create_snap("snap")
    assert image.closed
    assert not [call for call in image.calls if call[0] == "create_snap"]


@pytest.mark.parametrize("broken", [0, 10, 20, 90])
@pytest.mark.parametrize("failures", [1, 2, 3, 100])
def test_a_driver_that_retries_a_failed_write_loses_nothing(broken: int, failures: int) -> None:
    """The error comes in a later write's call: trying that one again tries the failed one again, too."""
    image = Image(bytes(100))
    image.failing = {broken}
    write, left = image.write, [OSError(28, "no space")] * failures

    def fails(data: bytes, offset: int) -> int:
        if offset == broken and left:
            raise left.pop()
        return write(data, offset)

    image.write = fails  # type: ignore[method-assign]

    def retrying(call: Callable[..., Any], *arguments: Any) -> Any:
        for _ in range(3):
            with contextlib.suppress(OSError):
                return call(*arguments)
        return call(*arguments)

    ends = pytest.raises(OSError, match="no space") if failures > 3 else contextlib.nullcontext()
    with ends, store_rbd.WriteBehind(image) as behind:
        for offset in range(0, 100, 10):
            retrying(behind.write, b"%02d" % offset * 5, offset)
        retrying(lambda: behind.create_snap("snap"))
    assert image.closed and (
        failures > 3 or bytes(image.data) == b"".join(b"%02d" % each * 5 for each in range(0, 100, 10))
    )


def test_write_beyond_the_end_fails_at_once() -> None:
    image = Image(bytes(15))
    with pytest.raises(OSError, match="write at 10"), store_rbd.WriteBehind(image) as behind:
        behind.write(b"x" * 10, 0)
        behind.write(b"x" * 10, 10)
    assert bytes(image.data) == b"x" * 10 + bytes(5)


def test_the_first_error_wins() -> None:
    """The caller's own exception is not hidden by a write that fails behind."""
    image = Image(bytes(30))
    image.failing = image.broken = {10}
    with pytest.raises(KeyError), store_rbd.WriteBehind(image) as behind:
        behind.write(b"x" * 10, 0)
        behind.write(b"x" * 10, 10)
        raise KeyError
    assert image.closed and not image.under_way


def test_images_without_aio_stay_themselves() -> None:
    """The fakes of glance_store's own tests, for one."""
    plain = object()
    assert store_rbd._capable(store_rbd.GreenReads, "aio_read")(plain) is plain


@given(data=st.binary(max_size=50), zeros=st.integers(0, 3 * sparse.GRAIN), at=st.integers(0, 3 * sparse.GRAIN))
def test_runs_of_zeros_are_holes(data: bytes, zeros: int, at: int) -> None:
    chunk = bytes(min(at, zeros)) + data + bytes(zeros - min(at, zeros))
    assert sparse.any_set(chunk) is sparse.any_set([*chunk]) is any(chunk)
    parts = list(sparse.runs(chunk))
    assert b"".join(chunk[start:end] for start, end, _ in parts) == chunk
    assert all(hole is (not any(chunk[start:end])) or not hole for start, end, hole in parts)
    assert all(before[2] != after[2] for before, after in zip(parts, parts[1:], strict=False))


def test_names_are_looked_up_in_the_module(ceph_store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replaced name in the driver's module takes effect."""
    from glance_store._drivers import rbd

    told: list[Any] = []
    monkeypatch.setattr(rbd.LOG, "debug", lambda *arguments: told.append(arguments))
    with fastio.patched(NAMES, strict=True):
        ceph_store.add(b"data")
    assert [line for line in told if line[0].startswith("creating image")]
