"""``store_swift``: segments and ranges with a real Swift."""

import uuid
from typing import Any

import pytest

pytest.importorskip("glance_store")
pytest.importorskip("swiftclient")
pytest.importorskip("glance_store._drivers.swift.store")

import fastio  # noqa: E402
from tests.outcome import as_upstream, outcome  # noqa: E402
from tests.stores.http_server import stock_block  # noqa: E402
from tests.stores.images import KIB, MIB, ImageFile, content, sizes  # noqa: E402

NAME = "store_swift"
CHUNK = 100_000
SETTING: dict[str, Any] = {"store_chunk_sizes": f"swift={CHUNK}"}
STOCK = 64 * KIB
#: ``swift_store_large_object_chunk_size`` = 1, in bytes.
SEGMENT = 1000 * 1024


@pytest.fixture(params=[False, True], ids=["direct", "buffered"])
def in_segments(request: pytest.FixtureRequest, open_store: Any, tmp_path: Any) -> Any:
    """A store whose images of a segment and more are large ones."""
    return open_store(
        "swift", swift_store_large_object_size=1, swift_store_large_object_chunk_size=1,
        swift_buffer_on_upload=request.param, swift_upload_buffer_dir=str(tmp_path),
    )  # fmt: skip


def test_a_slow_body_is_read_like_upstream_at_first(swift_store: Any) -> None:
    with fastio.patched(NAME):
        file = ImageFile(content(MIB))
        swift_store.add(file, size=MIB)
    # Upstream looks at one byte first.
    assert file.asked[:2] == [1, stock_block() - 1]


@pytest.mark.parametrize("in_segments", [True], indirect=True)
@pytest.mark.parametrize("size", [0, 2 * SEGMENT], ids=["unknown size", "known size"])
def test_the_chunks_of_buffered_segments(in_segments: Any, size: int) -> None:
    data = content(2 * SEGMENT)
    with fastio.patched(NAME, **SETTING):
        file = ImageFile(data)
        added = in_segments.add(file, size=size)
        # Two segments, each up to its end, and (not in glance_store 4) a third one, in which there is nothing.
        segment = [*(min(CHUNK, SEGMENT - at) for at in range(0, SEGMENT, CHUNK)), 0]
        assert file.asked in ([*segment, *segment, min(CHUNK, SEGMENT)], [*segment, *segment])
        assert in_segments.read(added.url) == data
    assert added.size == len(data)
    file = ImageFile(data)
    in_segments.add(file, size=size)
    assert max(file.asked) == STOCK


@pytest.mark.parametrize("size", [0, 2 * SEGMENT], ids=["unknown size", "known size"])
def test_an_image_file_that_fails(in_segments: Any, size: int) -> None:
    """The exception is upstream's."""

    def add() -> Any:
        file = ImageFile(content(2 * SEGMENT), 100_000, 300_000)
        return outcome(lambda: in_segments.add(file, str(uuid.UUID(int=size)), size=size))

    error, _ = as_upstream(add, NAME)
    assert issubclass(error, Exception)


@pytest.mark.parametrize("start", [0, 1, 99_999, 100_000, 300_000])
def test_the_rest_of_an_image(swift_store: Any, start: int) -> None:
    """Upstream's request (with a Range) after a transfer that was broken off."""
    from glance_store import location

    data = content(300_001)
    url = swift_store.add(data).url
    driver = swift_store.driver
    place = location.get_location_from_uri_and_backend(url, swift_store.identifier).store_location
    with fastio.patched(NAME, store_chunk_sizes={"*": 100_000}), driver.get_manager(place, None) as manager:
        headers, body = driver._get_object(place, manager, start)
        assert int(headers["content-length"]) == len(data) - start
        pieces = list(body)
    assert b"".join(pieces) == data[start:]
    assert [len(piece) for piece in pieces] == sizes(len(data) - start, 100_000)


def test_a_program_that_uses_swiftclient_alone(run_python: Any) -> None:
    code = """
        import sys
        import fastio
        fastio.patch()
        import swiftclient.client
        entries = [entry for entry in fastio.status().entries if entry.target.startswith("swiftclient")]
        print({entry.outcome.value for entry in entries}, "glance_store" in sys.modules)
        """
    result = run_python(code, options=("-W", "ignore"))
    assert result.stdout == "{'applied'} False\n", result.stderr
