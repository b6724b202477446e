"""``store_s3``: chunks of the s3 driver, as the server and the image file see them; and otherwise as stock."""

import functools
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import fastio
from fastio.patches.glance_store.store_s3 import PartReader
from tests.conftest import MONKEY_PATCHED

pytest.importorskip("glance_store")
pytest.importorskip("boto3")
hypothesis = pytest.importorskip("hypothesis")

from hypothesis import strategies as st  # noqa: E402

from tests.eventually import until  # noqa: E402
from tests.outcome import outcome  # noqa: E402
from tests.stores import s3_wire  # noqa: E402
from tests.stores.images import KIB, MIB, ImageFile, OddFile, Verifier  # noqa: E402
from tests.stores.s3_wire import MULTIPART, PART, Gate, Wire, refusal  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_client")

#: the hub is held no longer than by this
YIELD = MIB
DATA = os.urandom(MIB) * 27

patched = functools.partial(fastio.patched, ["store_s3"], strict=True)
same = functools.partial(s3_wire.same, "store_s3")
#: a property that runs against a server
few = hypothesis.settings(max_examples=6)


@pytest.fixture
def driver() -> Any:
    """The driver's module."""
    import glance_store._drivers.s3

    return glance_store._drivers.s3


@pytest.fixture
def in_parts(open_store: Callable[..., Any]) -> Any:
    """A store that uploads everything in parts of 5 MiB, by two threads."""
    return open_store("s3", identifier="in_parts", s3_store_thread_pools=2, **MULTIPART)


def part_lengths(wire: Wire) -> list[int]:
    return [request.length for request in wire.take() if request.part]


# The view of the server and of the image file.


def test_a_part_is_read_at_once(in_parts: Any, wire: Wire) -> None:
    file = ImageFile(DATA[: 12 * MIB])
    with patched():
        in_parts.add(file, size=12 * MIB)
    assert part_lengths(wire) == [PART, PART, 2 * MIB]
    if MONKEY_PATCHED:
        assert set(file.asked) == {YIELD}
    else:
        assert file.asked == [PART, PART, PART, 3 * MIB]


def test_a_part_is_read_in_chunks_of_the_setting(in_parts: Any, wire: Wire) -> None:
    file = ImageFile(DATA[: 12 * MIB])
    with patched(store_chunk_sizes={"s3": 3 * MIB}):
        in_parts.add(file, size=12 * MIB)
    assert part_lengths(wire) == [PART, PART, 2 * MIB]
    assert file.asked == [3 * MIB] * 5


def test_parts_of_an_image_of_many(in_parts: Any, wire: Wire, driver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the configured parts were too many they are larger."""
    monkeypatch.setattr(driver, "MAX_PART_NUM", 2)
    with patched():
        in_parts.add(ImageFile(DATA[: 15 * MIB + 1]), size=15 * MIB + 1)
    assert part_lengths(wire) == [7 * MIB + MIB // 2 + 1, 7 * MIB + MIB // 2]


def test_two_stores(open_store: Callable[..., Any], wire: Wire) -> None:
    small = open_store("s3", identifier="small", **MULTIPART)
    large = open_store("s3", identifier="large", **{**MULTIPART, "s3_store_large_object_chunk_size": 6})
    with patched():
        for store, lengths in ((small, [PART, PART, 2 * MIB]), (large, [6 * MIB] * 2)):
            added = store.add(DATA[: 12 * MIB])
            assert part_lengths(wire) == lengths
            assert store.read(added.url) == DATA[: 12 * MIB]
            assert added.metadata == {"store": store.identifier}


# The same as stock.


@few
@hypothesis.given(
    parts=st.integers(0, 3),
    more=st.sampled_from([-2, -1, 0, 1, 2, 4096, PART // 2]),
    short=st.sampled_from([None, 1 * MIB + 1, 5 * MIB - 1, 3 * MIB]),
    known=st.booleans(),
    chunk=st.sampled_from([None, "1MiB", "5MiB", 5 * MIB + 1, "256KiB"]),
)
@hypothesis.example(parts=0, more=0, short=None, known=True, chunk=None)
@hypothesis.example(parts=2, more=0, short=None, known=True, chunk=None)
@hypothesis.example(parts=2, more=1, short=64 * KIB, known=False, chunk=None)
def test_sizes_around_the_parts(
    in_parts: Any, wire: Wire, parts: int, more: int, short: int | None, known: bool, chunk: Any
) -> None:
    data = DATA[: max(0, parts * PART + more)]

    def life(store: Any) -> Any:
        verifier = Verifier()
        added = store.add(ImageFile(data, short), "sizes", len(data) if known else 0, verifier=verifier)
        assert (store.read(added.url) == data, store.size(added.url)) == (True, len(data))
        store.delete(added.url)
        return added, verifier.pieces

    settings: dict[str, Any] = {} if chunk is None else {"store_chunk_sizes": {"s3": chunk}}
    (added, _), _ = same(in_parts, wire, life, **settings)
    assert added.size == len(data)


@pytest.fixture(params=["store_s3", "s3_singlepart"])
def either(request: pytest.FixtureRequest) -> tuple[str, Any]:
    """A patch, and a store that uploads what it is given in the way that the patch changes."""
    return request.param, request.getfixturevalue({"store_s3": "in_parts", "s3_singlepart": "s3_store"}[request.param])


@pytest.mark.parametrize("announced", [1, MIB, PART, 6 * MIB, 7 * MIB, 10 * MIB, 11 * MIB, 13 * MIB, 30 * MIB])
def test_an_image_of_another_size_than_announced(either: tuple[str, Any], wire: Wire, announced: int) -> None:
    """The same error, which contains the position; in one piece nothing is sent, and parts are given up."""
    import glance_store

    def add(store: Any) -> Any:
        return store.add(ImageFile(DATA[: 12 * MIB]), "other-size", announced)

    (error, _), requests = s3_wire.same(*either, wire, add)
    assert error is glance_store.Invalid
    in_parts = either[0] == "store_s3"
    assert any(request.aborts for request in requests) == in_parts
    assert in_parts or not [request for request in requests if request.method == "PUT"]


def test_a_part_that_the_server_refuses(
    in_parts: Any, wire: Wire, driver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import glance_store

    # Upstream formats the error's code, text, with %d. That is but a line on stderr, unless pytest captures the log.
    monkeypatch.setattr(driver.LOG, "disabled", True)
    wire.answer = lambda request: refusal(400, "InvalidPart") if request.part == 2 else None
    (error, text), requests = same(
        in_parts, wire, lambda store: store.add(ImageFile(DATA[: 12 * MIB]), "refused", 12 * MIB)
    )
    assert error is glance_store.BackendException
    assert text == "Failed to add image object to S3. key=refused"
    assert len([request for request in requests if request.aborts]) == 1


def test_every_part_is_refused(in_parts: Any, wire: Wire, driver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """More parts than there may be in memory at once: those that failed make room as well."""
    monkeypatch.setattr(driver.LOG, "disabled", True)
    wire.answer = lambda request: refusal(400, "InvalidPart") if request.part else None
    same(in_parts, wire, lambda store: store.add(ImageFile(DATA), "all-refused", len(DATA)))


@pytest.mark.parametrize("fails_at", [0, 3 * MIB, PART, 11 * MIB])
def test_an_image_file_that_fails(in_parts: Any, wire: Wire, fails_at: int) -> None:
    def add(store: Any) -> Any:
        return store.add(ImageFile(DATA[: 12 * MIB], short=MIB, fails_at=fails_at), "failed", 12 * MIB)

    with patched(store_chunk_sizes={"s3": MIB}):
        assert outcome(lambda: add(in_parts)) == (OSError, "the image cannot be read")
    assert part_lengths(wire) == [PART] * (fails_at // PART)


@pytest.mark.parametrize("data", ["text", None, bytearray(b"1234"), memoryview(b"12345"), 5, b"", [1]], ids=repr)
@pytest.mark.parametrize("first", [[], [b"before"]], ids=["at once", "behind bytes"])
def test_an_image_file_of_something_else(either: tuple[str, Any], wire: Wire, data: Any, first: list[Any]) -> None:
    def add(store: Any) -> Any:
        added = store.add(OddFile(*first, data, b"more", data), "odd")
        store.delete(added.url)
        return added

    s3_wire.same(*either, wire, add)


def test_an_iterator(either: tuple[str, Any], wire: Wire) -> None:
    def add(store: Any) -> Any:
        added = store.add(iter([DATA[:MIB], DATA[: 6 * MIB], b"", DATA[: 5 * MIB]]), "iterator", 12 * MIB)
        store.delete(added.url)
        return added

    added, requests = s3_wire.same(*either, wire, add)
    assert added.size == 12 * MIB
    assert len([request for request in requests if request.part]) == (3 if either[0] == "store_s3" else 0)


# Memory.


def test_a_multipart_upload_reads_no_further_than_it_can_send(in_parts: Any, wire: Wire) -> None:
    gate = Gate()
    wire.answer = lambda request: gate.hold() if request.part else None
    file = ImageFile(DATA)
    added: list[Any] = []
    with patched():
        upload = threading.Thread(target=lambda: added.append(in_parts.add(file, size=len(DATA))))
        upload.start()
        until(lambda: gate.arrived == 2 and file.position == 3 * PART)
        # Two parts on their way, one ready. Stock would go on to the end.
        time.sleep(0.3)
        assert (gate.arrived, file.position) == (2, 3 * PART)
        gate.open()
        upload.join(60)
    assert added[0].size == len(DATA)
    assert in_parts.read(added[0].url) == DATA


def test_a_part_that_comes_at_once_is_not_copied() -> None:
    whole = bytes(1000)
    assert PartReader(OddFile(whole), 1000, 1000, lambda: None).read(5) is whole


@pytest.mark.parametrize(
    ("reads", "parts"),
    [
        # In chunks of 3 bytes upstream has the next multiple of them: 12, 21, 30.
        ([3, 3, 3, 3, 9, 9], [12, 9, 9, 0]),
        ([12, 9, 9], [12, 9, 9, 0]),
        # A read that gives less ends upstream's chunk: a part ends there once it has its bytes, and not before.
        ([2, 2, 2, 2, 2, 10], [10, 10, 0]),
        ([9, 1, 5, 5], [10, 10, 0]),
        ([11, 8, 1], [11, 9, 0]),
        ([4], [4, 0]),
    ],
)
def test_where_a_part_ends(reads: list[int], parts: list[int]) -> None:
    reader = PartReader(OddFile(*map(bytes, reads)), 10, 1000, lambda: None)
    assert [len(reader.read(3)) for _ in parts] == parts
