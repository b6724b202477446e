"""Tests of each driver alike: with fastio an image's life is upstream's, but in chunks of the configured size."""

import hashlib
import importlib
import importlib.metadata
import io
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("glance_store")

from glance_store import backend, capabilities, exceptions, multi_backend

import fastio
from fastio import counters
from fastio.config import STORES
from fastio.io import hashing, uploads
from fastio.patches.glance_store import store_cinder, store_filesystem, store_http, store_rbd, store_swift, store_vmware
from fastio.patches.glance_store.store_s3 import READ_CHUNK as S3_CHUNK
from fastio.patching import registry
from tests.conftest import MONKEY_PATCHED, needs_eventlet
from tests.outcome import outcome
from tests.stores.images import KIB, MIB, ImageFile, Ticker, TimeIsOver, Verifier, content, sizes

#: Of tests that need many chunks.
CHUNK = 16 * KIB
#: Those that compare an image's size with the announced one.
COMPARING = registry.Requirement("glance_store >= 5.0")
OTHER_PATCHES = ("image_fairness", "image_hashing")


@dataclass(frozen=True)
class Driver:
    """A driver of glance_store, and what is its own way of doing what all of them do."""

    #: in ``store_chunk_sizes``
    name: str
    #: bytes at a time that a download comes in, with fastio and from stock
    read: int
    stock_read: int
    #: bytes of the reads of an image file; None: the driver's own tests have it
    write: int | None
    #: its patches
    patches: tuple[str, ...]
    #: of :data:`benchmarks.backends.BACKENDS`
    backend: str = ""
    #: glance_store's option of the chunk size, its default and its unit in bytes
    option: tuple[str, int, int] | None = None
    adds: bool = True
    #: how far an announced size may be off: where it is too large a server waits for the rest
    off: tuple[int, ...] = (0, -1, 1)
    #: it is one of ``fastio.drivers``
    own: bool = False

    def __str__(self) -> str:
        return self.name

    def patched(self, **arguments: Any) -> Any:
        """All that fastio does to an image of this driver is in effect."""
        return fastio.patched((*self.patches, *OTHER_PATCHES), strict=True, **arguments)

    def in_small_chunks(self) -> Any:
        return self.patched(store_chunk_sizes={self.name: CHUNK}, yield_bytes=3 * CHUNK)


DRIVERS = [
    Driver(
        "filesystem", store_filesystem.CHUNK, 64 * KIB, store_filesystem.CHUNK, ("store_filesystem",),
        option=("filesystem_store_chunk_size", 64 * KIB, 1),
    ),
    Driver("http", store_http.READ_CHUNK, 4 * MIB, None, ("store_http",), adds=False),
    Driver("swift", store_swift.CHUNK, 64 * KIB, uploads.LARGEST, ("store_swift",), off=(0,)),
    Driver("s3", S3_CHUNK, 64 * KIB, None, ("store_s3", "s3_singlepart")),
    Driver(
        "rbd", store_rbd.READ_CHUNK, 8 * MIB, store_rbd.CHUNK, ("store_rbd",), "ceph",
        option=("rbd_store_chunk_size", 8, MIB),
    ),
    Driver(
        "cinder", store_cinder.CHUNK, 4 * MIB, store_cinder.CHUNK,
        ("store_cinder", "fix_cinder_file_volumes", "fix_cinder_read_errors"),
        # Up to 4.10 upstream loses what is beyond the announced size, and says nothing.
        off=(0, -1, 1) if COMPARING.accepts(importlib.metadata.version("glance_store")) else (0, 1),
    ),
    Driver("vmware", store_vmware.CHUNK, 4 * MIB, uploads.LARGEST, ("store_vmware",), off=(0,)),
    Driver("sheepdog", MIB, MIB, MIB, (), option=("sheepdog_store_chunk_size", 1, MIB), own=True),
]  # fmt: skip


def _each(is_meant: Callable[[Driver], Any]) -> Any:
    @pytest.fixture(params=[driver for driver in DRIVERS if is_meant(driver)], ids=str)
    def each(request: pytest.FixtureRequest) -> Driver:
        return request.param

    return each


driver = _each(lambda each: True)
#: One that takes images.
writer = _each(lambda each: each.adds)
#: One of which an operator can set the chunk size.
configurable = _each(lambda each: each.option)
#: One that fastio brings: there is no stock to compare it with.
own = _each(lambda each: each.own)


@pytest.fixture
def open_driver(open_store: Callable[..., Any]) -> Callable[..., Any]:
    """``open_driver(driver, **options)`` is a store of that driver, as ``open_store()`` makes one."""
    return lambda driver, **options: open_store(driver.backend or driver.name, **options)


@pytest.fixture
def store(request: pytest.FixtureRequest, open_driver: Callable[..., Any]) -> Iterator[Any]:
    """A store of the ``driver``, the ``writer`` or the driver that is our ``own``."""
    name = next(name for name in ("driver", "writer", "own") if name in request.fixturenames)
    # Clients take most of s3's time, and have separate tests.
    with fastio.patched("s3_client"):
        yield open_driver(request.getfixturevalue(name))


def test_every_driver_is_tested() -> None:
    assert {driver.name for driver in DRIVERS} == set(STORES)
    entries = importlib.metadata.entry_points(group="glance_store.drivers")
    ours = {entry.name for entry in entries if entry.value.startswith("fastio.drivers.")}
    assert {driver.name for driver in DRIVERS if driver.own} == ours


# An image's life


def life(store: Any, image_id: str, data: bytes, size: int, offset: int, length: int | None) -> Any:
    """All that a caller sees of one image; where it ends in an error, of another one of that name as well."""
    verifier = Verifier()
    try:
        added = store.add(ImageFile(data), image_id, size, verifier=verifier)
    except exceptions.GlanceStoreException as error:
        # How far it was read depends on the chunk. The incomplete image is gone.
        return type(error), str(error).partition(", got")[0], life(store, image_id, data, len(data), 0, None)
    assert added.metadata["store"] == store.identifier
    assert (added.size, added.checksum) == (len(data), hashlib.md5(data).hexdigest())
    assert added.multihash == hashlib.sha512(data).hexdigest()
    assert verifier.seen == data
    image, whole = store.get(added.url)
    assert b"".join(image) == data
    found: Any = {"image": image.__class__.__name__, "sizes": (whole, store.size(added.url))}
    if offset < len(data):
        found["part"] = part = outcome(lambda: part_of(store, added.url, offset, length))
        assert part[0] in (data[offset:][:length], exceptions.StoreRandomGetNotSupported)
    again = outcome(lambda: store.add(data, image_id))
    found["added again"] = again[0]
    if again[0] not in (added.url, exceptions.Duplicate, exceptions.BackendException):
        # A volume has a separate name.
        store.delete(again[0])
    assert store.read(added.url) == data
    store.delete(added.url)
    found["deleted"] = [outcome(partial(call, added.url)) for call in (store.read, store.size, store.delete)]
    found = str(found).replace(added.url.rpartition("/")[2], "ID")
    return found.replace(again[0], "AGAIN") if isinstance(again[0], str) else found


def part_of(store: Any, url: str, offset: int, length: int | None) -> tuple[bytes, int]:
    chunks, size = store.get(url, offset=offset, chunk_size=length)
    return b"".join(chunks), size


@settings(max_examples=8)
@given(
    chunks=st.integers(0, 5),
    rest=st.sampled_from([-1, 0, 1, 4097]),
    off=st.sampled_from([None, 0, 1, 2]),
    offset=st.integers(0, 3 * CHUNK),
    length=st.none() | st.integers(1, 3 * CHUNK),
)
@example(chunks=0, rest=0, off=None, offset=0, length=None)
@example(chunks=0, rest=1, off=0, offset=0, length=None)
@example(chunks=3, rest=0, off=0, offset=CHUNK, length=CHUNK)
def test_an_images_life(
    writer: Driver, store: Any, chunks: int, rest: int, off: int | None, offset: int, length: int | None
) -> None:
    """Sizes around multiples of the chunk, known, unknown and wrong ones."""
    data = content(max(0, chunks * CHUNK + rest))
    size = 0 if off is None else max(0, len(data) + writer.off[off % len(writer.off)])
    image_id = str(uuid.uuid4())
    stock = life(store, image_id, data, size, offset, length)
    if writer.own:
        assert (str(stock).count("NotFound"), str(stock).count("Duplicate")) == (3, 1)
    with writer.in_small_chunks():
        assert life(store, image_id, data, size, offset, length) == stock


#: Drivers whose bytes fastio's own code reads, and writes: natively, and where greenlets may be.
MOVES: dict[str, list[set[str]]] = {
    "read": [{"swift"}, {"swift", "filesystem", "cinder", "rbd"}],
    "write": [{"rbd"}, {"rbd", "filesystem", "cinder"}],
}


def test_an_image_counts_its_calls_and_bytes(writer: Driver, store: Any) -> None:
    """The calls for each image, and the bytes that fastio's own code moves; see ``tests/patching/test_counts.py``."""
    data = content(5 * MIB)
    with writer.patched():
        counters.reset()
        url = store.add(ImageFile(data), str(uuid.uuid4()), len(data)).url
        written = fastio.metrics().patches
        counters.reset()
        assert store.read(url) == data
        read = fastio.metrics().patches
    store.delete(url)
    for found, what in ((written, "write"), (read, "read")):
        if writer.own:
            continue
        moved = found[writer.patches[0]]
        assert moved.calls >= 1
        assert moved.bytes == (len(data) if writer.name in MOVES[what][MONKEY_PATCHED] else 0)
        if MONKEY_PATCHED:
            assert (found["image_fairness"].calls, found["image_fairness"].bytes) == (1, len(data))
    # The rest of an image is hashed by who asks for the digest.
    assert written["image_hashing"].calls == 2
    assert 2 * (len(data) - hashing.LIMIT) <= written["image_hashing"].bytes <= 2 * len(data)
    if writer.name == "s3":
        assert (written["s3_singlepart"].calls, written["s3_singlepart"].bytes) == (1, len(data))


@pytest.mark.parametrize("error", [TimeIsOver("late"), KeyboardInterrupt()], ids=repr)
def test_an_image_file_that_fails(writer: Driver, store: Any, error: BaseException) -> None:
    """The exception is upstream's, and so is what is left."""
    data = content(5 * CHUNK)

    def failing() -> Any:
        image_id = str(uuid.uuid4())
        with pytest.raises(BaseException) as caught:  # noqa: PT011, B017 - whatever upstream raises
            store.add(ImageFile(data, fails_at=3 * CHUNK, error=error), image_id, len(data))
        again = outcome(lambda: store.add(data, image_id))
        if len(again) != 2:
            assert store.read(again.url) == data
            store.delete(again.url)
        return type(caught.value), str(caught.value).replace(image_id, "ID"), len(again)

    stock = failing()
    with writer.in_small_chunks():
        assert failing() == stock


# Chunks


@pytest.mark.parametrize(
    ("arguments", "chunk"),
    [
        ({}, None),
        ({"store_chunk_sizes": "*=256KiB"}, 256 * KIB),
        ({"store_chunk_sizes": "*=8MiB,{}=100000"}, 100_000),
        ({"store_chunk_sizes": "{}=64KiB"}, None),
    ],
    ids=["default", "of all drivers", "of the driver", "of another driver"],
)
def test_chunks(
    driver: Driver, store: Any, arguments: dict[str, Any], chunk: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a store that was there before; and it is unchanged after."""
    # The image is at hand, however busy the machine is.
    monkeypatch.setattr(uploads, "AT_ONCE", 60)
    other = "http" if driver.name == "s3" else "s3"
    name = driver.name if chunk else other
    arguments = {key: value.format(name) for key, value in arguments.items()}
    data = content(2 * max(driver.read, driver.stock_read) + 300_001)
    url = store.place(data)
    with driver.patched(**arguments):
        chunks, size = store.get(url)
        assert size == len(data)
        pieces = list(chunks)
        assert b"".join(pieces) == data
        assert [len(piece) for piece in pieces] == sizes(len(data), chunk or driver.read)
        if driver.adds:
            file = ImageFile(data)
            store.add(file, size=len(data))
            if chunk or driver.write:
                assert max(file.asked) == (chunk or driver.write)
    assert [len(piece) for piece in store.get(url)[0]] == sizes(len(data), driver.stock_read)


def test_a_setting_that_changes_holds_at_once(driver: Driver, store: Any) -> None:
    url = store.place(content(CHUNK * 8))
    with driver.patched():
        for chunk in (CHUNK, 2 * CHUNK):
            fastio.patch(driver.patches, store_chunk_sizes={"*": chunk})
            assert {len(each) for each in store.get(url)[0]} == {chunk}


def test_the_operator_wins_unless_ours_is_explicit(configurable: Driver, open_driver: Callable[..., Any]) -> None:
    name, default, unit = configurable.option  # type: ignore[misc]
    stores = [open_driver(configurable, identifier=f"store-{option}", **({} if option is None else {name: option}))
              for option in (None, 2 * MIB // unit, default)]  # fmt: skip
    data = content(9 * MIB)

    def chunks() -> list[tuple[int, int]]:
        """The sizes of reads from the store and of an image file."""
        found = []
        for store in stores:
            file = ImageFile(data)
            url = store.add(file, size=len(data)).url
            found.append((max(len(chunk) for chunk in store.get(url)[0]), max(file.asked)))
            store.delete(url)
        return found

    default *= unit
    stock = [(default,) * 2, (2 * MIB,) * 2, (default,) * 2]
    assert chunks() == stock
    ours = [(configurable.read, configurable.write), *stock[1:]]
    with configurable.patched():
        assert chunks() == ours
        # A reload of the configuration.
        for store in stores:
            store.driver.configure_add()
        assert chunks() == ours
        stores.append(open_driver(configurable, identifier="late"))
        assert chunks() == [*ours, ours[0]]
    stock.append(stock[0])
    assert chunks() == stock
    with configurable.patched(store_chunk_sizes={"*": "1MiB", configurable.name: "3MiB"}):
        assert chunks() == [(3 * MIB,) * 2] * 4
    with configurable.patched(store_chunk_sizes={"*": "512KiB"}):
        assert chunks() == [(512 * KIB,) * 2] * 4
    assert chunks() == stock


# Consumers


@pytest.mark.parametrize("taken", [0, 1, 3])
def test_a_consumer_that_stops(driver: Driver, store: Any, taken: int) -> None:
    data = content(20 * CHUNK)
    url = store.place(data)
    with driver.in_small_chunks():
        image, _ = store.get(url)
        chunks = iter(image)
        assert b"".join(next(chunks) for _ in range(taken)) == data[: taken * CHUNK]
        for each in (chunks, chunks, image):
            if hasattr(each, "close"):
                each.close()
        del image, chunks
        assert store.read(url) == data


@pytest.fixture
def greenlets() -> Iterator[Any]:
    """eventlet, whose hub there is."""
    eventlet = pytest.importorskip("eventlet")
    eventlet.sleep(0)
    yield eventlet


@needs_eventlet
def test_others_run_meanwhile(driver: Driver, store: Any, greenlets: Any) -> None:
    data = content(20 * CHUNK)
    url = store.place(data)
    with driver.patched(store_chunk_sizes={driver.name: CHUNK}, yield_bytes=CHUNK):
        with Ticker() as reading:
            assert store.read(url) == data
        # A greenlet that has yielded may wait, too, and go on before the hub's next turn: two chunks.
        assert reading.ticks >= 9
        if driver.adds:
            with Ticker() as writing:
                store.add(data)
            assert writing.ticks >= 9


@needs_eventlet
@pytest.mark.parametrize("taken", [0, 1, 5])
def test_a_time_out_while_reading(driver: Driver, store: Any, greenlets: Any, taken: int) -> None:
    data = content(20 * CHUNK)
    url = store.place(data)
    current = greenlets.getcurrent()
    with driver.patched(store_chunk_sizes={driver.name: CHUNK}, yield_bytes=CHUNK):
        image, _ = store.get(url)
        chunks = iter(image)
        found = [next(chunks) for _ in range(taken)]
        greenlets.spawn_n(current.throw, TimeIsOver())
        with pytest.raises(TimeIsOver):
            found.extend(chunks)
        assert data.startswith(b"".join(found))
        for each in (chunks, image):
            if hasattr(each, "close"):
                each.close()
        del image, chunks
        assert store.read(url) == data


@needs_eventlet
@pytest.mark.parametrize("when", [0, 2, 9])
def test_a_time_out_while_writing(writer: Driver, store: Any, greenlets: Any, when: int) -> None:
    """Nothing is left of the image."""
    data = content(20 * CHUNK)
    image_id = str(uuid.uuid4())
    current = greenlets.getcurrent()

    def end(file: ImageFile) -> None:
        if len(file.asked) == when:
            greenlets.spawn_n(current.throw, TimeIsOver())

    with writer.patched(store_chunk_sizes={writer.name: CHUNK}, yield_bytes=CHUNK):
        with pytest.raises(TimeIsOver):
            store.add(ImageFile(data, before=end), image_id, len(data))
        assert store.read(store.add(data, image_id).url) == data


# Drivers that fastio brings


IMAGE = content(9 * MIB + 17)
#: Around the chunks, and the objects of 4 MiB that sheepdog keeps.
SIZES = st.sampled_from([
    0, 1, 64 * KIB, MIB - 1, MIB, 4 * MIB - 1, 4 * MIB, 4 * MIB + 1, 8 * MIB, len(IMAGE)
]) | st.integers(0, len(IMAGE) + MIB)  # fmt: skip


@pytest.fixture
def kept(own: Driver, store: Any) -> Iterator[str]:
    """The URL of ``IMAGE``."""
    url = store.add(IMAGE).url
    yield url
    store.delete(url)


@settings(max_examples=15)
@given(offset=SIZES, length=st.none() | SIZES, chunk=st.sampled_from([4 * KIB, 100_003, MIB, 4 * MIB]))
def test_any_part_of_an_image(own: Driver, store: Any, kept: str, offset: int, length: int | None, chunk: int) -> None:
    end = len(IMAGE) if not length else offset + length
    with own.patched(store_chunk_sizes={own.name: chunk}):
        chunks, size = store.get(kept, offset=offset, chunk_size=length or None)
        pieces = list(chunks)
    assert b"".join(pieces) == IMAGE[offset:end]
    assert size == (length or len(IMAGE))
    assert all(len(piece) == chunk for piece in pieces[:-1])
    assert all(pieces)


def test_its_capabilities_are_declared(own: Driver, store: Any) -> None:
    masks = capabilities.BitMasks
    assert store.driver.is_capable(masks.READ_RANDOM, masks.RW_ACCESS, masks.DRIVER_REUSABLE)


def test_data_may_come_from_an_iterator(own: Driver, store: Any) -> None:
    for size in (MIB, 0):
        added = store.add(iter([IMAGE[:1], b"", IMAGE[1:70_000], IMAGE[70_000:MIB]]), size=size)
        assert store.read(added.url) == IMAGE[:MIB]
        store.delete(added.url)


def test_callers_from_before_the_multihash(own: Driver, store: Any) -> None:
    url, *rest = store.driver.add(str(uuid.uuid4()), io.BytesIO(b"data"), 4)
    assert rest[:2] == [4, hashlib.md5(b"data").hexdigest()]
    store.delete(url)


@pytest.mark.parametrize("announced", [1, 2 * MIB, 3 * MIB - 1, 3 * MIB + 1, 9 * MIB])
def test_another_size_than_announced(own: Driver, store: Any, announced: int) -> None:
    image_id = str(uuid.uuid4())
    with pytest.raises(exceptions.Invalid, match=f"Size .*: expected {announced} bytes, got [123]"):
        store.add(IMAGE[: 3 * MIB], image_id, announced)
    with pytest.raises(exceptions.NotFound):
        store.size(store.driver.url_prefix + image_id)


def test_it_adds_no_options_to_glance_store_s(own: Driver) -> None:
    """Installing fastio must not change what other programs list and write into their sample files."""
    found = [*(options for _, options in backend._list_opts()), *multi_backend._list_driver_opts().values()]
    listed = [option.name for options in found for option in options]
    assert "filesystem_store_datadir" in listed
    assert not [name for name in listed if name.startswith(own.name)]
