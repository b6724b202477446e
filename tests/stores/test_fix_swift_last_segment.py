"""``fix_swift_last_segment``: the last segment of a large image is announced with its own size."""

import hashlib
import io
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("glance_store")
swiftclient = pytest.importorskip("swiftclient")
pytest.importorskip("glance_store._drivers.swift.store")

import fastio  # noqa: E402
from fastio.report import Outcome  # noqa: E402
from tests.outcome import as_upstream  # noqa: E402
from tests.stores.images import Verifier, content  # noqa: E402

#: ``swift_store_large_object_chunk_size`` = 1, in bytes.
SEGMENT = 1000 * 1024
NAME = "fix_swift_last_segment"


@pytest.fixture
def fixed() -> Iterator[None]:
    with fastio.patched(NAME):
        outcome = fastio.status().outcome(NAME)
        if outcome is Outcome.OFF:
            pytest.skip("this glance_store announces the last segment with its own size")
        assert outcome is Outcome.APPLIED
        yield


@pytest.fixture
def open_swift(open_store: Callable[..., Any], tmp_path: Any) -> Callable[..., Any]:
    """``open_swift(buffered=False)`` is a store whose images of two segments and more are large ones."""

    def open_(buffered: bool = False) -> Any:
        options: dict[str, Any] = {"swift_store_large_object_size": 2, "swift_store_large_object_chunk_size": 1}
        if buffered:
            options |= {"swift_buffer_on_upload": True, "swift_upload_buffer_dir": str(tmp_path)}
        return open_store("swift", **options)

    return open_


@pytest.fixture(params=[False, True], ids=["direct", "buffered"])
def swift(request: pytest.FixtureRequest, open_swift: Callable[..., Any]) -> Any:
    return open_swift(request.param)


def objects(store: Any, image_id: str) -> dict[str, int]:
    """The objects of an image and their sizes."""
    access = store.access
    connection = swiftclient.Connection(access["auth_v1"], access["user"], access["key"])
    try:
        listing = connection.get_container(access["container"], prefix=image_id, full_listing=True)[1]
    except swiftclient.ClientException as error:
        assert error.http_status == 404
        return {}
    finally:
        connection.close()
    return {entry["name"].removeprefix(image_id): entry["bytes"] for entry in listing}


@pytest.mark.parametrize(
    "size",
    [2 * SEGMENT, 2 * SEGMENT + 1, 3 * SEGMENT - 1, 3 * SEGMENT, 3 * SEGMENT + 1, 2 * SEGMENT + 77_777],
)
def test_large_images(fixed: None, swift: Any, size: int) -> None:
    data, image_id, verifier = content(size), str(uuid.uuid4()), Verifier()
    added = swift.add(data, image_id, verifier=verifier)
    assert (added.size, added.checksum) == (size, hashlib.md5(data).hexdigest())
    assert added.multihash == hashlib.sha512(data).hexdigest()
    assert added.metadata == {"store": swift.identifier}
    assert verifier.seen == data
    assert swift.read(added.url) == data
    assert swift.size(added.url) == size
    whole, rest = divmod(size, SEGMENT)
    sizes = [SEGMENT] * whole + [rest] * bool(rest)
    assert objects(swift, image_id) == {"": 0, **{f"-{i:05}": part for i, part in enumerate(sizes, 1)}}
    assert fastio.metrics().patches[NAME].calls == 1
    swift.delete(added.url)
    assert objects(swift, image_id) == {}


@pytest.mark.parametrize(
    ("length", "size"),
    [
        (0, 0), (1, 0), (SEGMENT, 0), (2 * SEGMENT + 1, 0),
        (1, 1), (2 * SEGMENT - 1, 2 * SEGMENT - 1), (2 * SEGMENT, 2 * SEGMENT), (3 * SEGMENT, 3 * SEGMENT),
    ],
)  # fmt: skip
def test_uploads_that_work_upstream_are_unchanged(swift: Any, length: int, size: int) -> None:
    """Images of unknown size, small ones, and those that the segments divide: the same result and the same objects."""
    image_id = str(uuid.uuid4())

    def add() -> Any:
        verifier = Verifier()
        added = swift.add(io.BytesIO(content(length)), image_id, size=size, verifier=verifier)
        found = (added, objects(swift, image_id), swift.read(added.url), verifier.seen)
        swift.delete(added.url)
        return found

    as_upstream(add, NAME)


@pytest.mark.parametrize("size", [2 * SEGMENT, 2 * SEGMENT + 1, 3 * SEGMENT - 1])
@pytest.mark.parametrize("more", [1, SEGMENT, 2 * SEGMENT])
def test_a_file_with_more_than_its_size(fixed: None, swift: Any, size: int, more: int) -> None:
    """Refused, and no segment stays."""
    from glance_store import exceptions

    image_id = str(uuid.uuid4())
    with pytest.raises(exceptions.Invalid, match=f"expected {size} bytes"):
        swift.add(io.BytesIO(content(size + more)), image_id, size=size)
    assert objects(swift, image_id) == {}


def test_a_file_that_ends_with_a_segment_too_soon(swift: Any) -> None:
    from glance_store import exceptions

    image_id = str(uuid.uuid4())

    def add() -> Any:
        with pytest.raises(exceptions.Invalid) as caught:
            swift.add(io.BytesIO(content(2 * SEGMENT)), image_id, size=3 * SEGMENT)
        return str(caught.value), objects(swift, image_id)

    as_upstream(add, NAME)


def test_uploads_at_the_same_time_with_one_driver(fixed: None, open_swift: Callable[..., Any]) -> None:
    """Each has its own count of what is left."""
    store = open_swift()
    driver = store.driver
    before = dict(vars(driver))
    sizes = [2 * SEGMENT + 1, 3 * SEGMENT - 1, 4 * SEGMENT + 5]

    def upload(size: int) -> Any:
        return driver.add(str(uuid.uuid4()), io.BytesIO(content(size)), size, "sha512")

    with ThreadPoolExecutor(len(sizes)) as pool:
        for size, (url, added, _, multihash, _) in zip(sizes, pool.map(upload, sizes), strict=True):
            assert (added, multihash) == (size, hashlib.sha512(content(size)).hexdigest())
            assert store.read(url) == content(size)
    # One upload's view is not the driver's.
    assert {name: vars(driver)[name] for name in before} == before


def announced(store: Any, size: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes with which segments are announced to Swift, up to the first that is more than there is."""
    found: list[int] = []
    put_object = swiftclient.client.Connection.put_object

    def spy(self: Any, container: str, obj: str, contents: Any, content_length: Any = None, **named: Any) -> Any:
        if contents is not None:
            found.append(content_length)
            if sum(found) > size:
                raise swiftclient.ClientException("it would wait for the rest", http_status=408)
        return put_object(self, container, obj, contents, content_length=content_length, **named)

    with monkeypatch.context() as patch:
        patch.setattr(swiftclient.client.Connection, "put_object", spy)
        try:
            store.delete(store.add(content(size)).url)
        except Exception as error:
            assert "it would wait for the rest" in str(error)
    return found


def test_upstream_still_announces_too_much(open_swift: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """When this fails upstream has mended it, and the fix can go."""
    store = open_swift()
    assert announced(store, 2 * SEGMENT + 1, monkeypatch) == [SEGMENT] * 3
    with fastio.patched(NAME):
        assert announced(store, 2 * SEGMENT + 1, monkeypatch) == [SEGMENT, SEGMENT, 1]
    assert announced(store, 2 * SEGMENT + 1, monkeypatch) == [SEGMENT] * 3


def test_the_driver_looks_unchanged(fixed: None, open_swift: Callable[..., Any]) -> None:
    """During an upload the driver is of its class, and what is assigned to it stays."""
    from fastio.patches.glance_store import fix_swift_last_segment

    driver = open_swift().driver
    view = fix_swift_last_segment._for_upload(driver, 5)
    assert isinstance(view, type(driver))
    assert type(view).__name__ == type(driver).__name__
    view.container = "assigned"
    assert driver.container == "assigned"
    assert (view.large_object_chunk_size, driver.large_object_chunk_size) == (5, SEGMENT)
