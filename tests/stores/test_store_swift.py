"""``store_swift``: segments and ranges with a real Swift, and servers that fail."""

import io
import threading
import uuid
import warnings
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("glance_store")
swiftclient = pytest.importorskip("swiftclient")
pytest.importorskip("glance_store._drivers.swift.store")

import fastio  # noqa: E402
from tests.outcome import as_upstream, outcome  # noqa: E402
from tests.stores.http_server import Answer, in_turn, serving, stock_block  # noqa: E402
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


# Faults that Swift does not have on demand: servers that fail, and swiftclient's ways to go on.


def connect(url: str, **options: Any) -> Any:
    options = {"starting_backoff": 0, "max_backoff": 0, **options}
    return swiftclient.Connection(preauthurl=f"{url}/v1/account", preauthtoken="token", **options)


BODY = content(3 * MIB)
ETAG = {"ETag": "etag"}


def rest(start: int) -> Answer:
    headers = {**ETAG, "Content-Range": f"bytes {start}-{len(BODY) - 1}/{len(BODY)}"}
    return Answer("206 Partial Content", headers, BODY[start:])


def downloaded(answers: list[Answer], stalls_at: int | None = None, **options: Any) -> Any:
    """Return the data of an object, its end, and the requests to the server for it.

    :param stalls_at: bytes after which the server is known to stall, where a long time-out need not be waited for
    """
    found = b""
    end: Any = None
    with serving(in_turn(answers)) as server:
        connection = connect(server.url, **options)
        try:
            _, body = connection.get_object("c", "o", resp_chunk_size=256 * KIB)
            for piece in body:
                found += piece
                if len(found) == stalls_at:
                    connection.http_conn[1].resp.raw.connection.sock.settimeout(0.3)
        except Exception as error:
            end = type(error), str(error).replace(str(server.port), "PORT")
        asked = [(each.path, each.headers.get("range"), each.headers.get("if-match")) for each in server.requests]
        numbers = [each.connection for each in server.requests]
        connection.close()
    return found, end, asked, numbers


DOWNLOADS: dict[str, Callable[[], list[Answer]]] = {
    "whole": lambda: [Answer(headers=ETAG, body=BODY)],
    "of nothing": lambda: [Answer(headers=ETAG)],
    "broken off and resumed": lambda: [Answer(headers=ETAG, body=BODY, breaks_off=MIB), rest(MIB)],
    "broken off within a chunk": lambda: [
        Answer(headers=ETAG, body=BODY, breaks_off=700_000),
        rest(512 * KIB),
        rest(700_000),
    ],
    "begun anew": lambda: [Answer(headers=ETAG, body=BODY, breaks_off=MIB), Answer(headers=ETAG, body=BODY)],
    "an error, then all": lambda: [Answer("503 Busy", body=b"later"), Answer(headers=ETAG, body=BODY)],
    "not found": lambda: [Answer("404 Not Found", body=b"no")],
    "error": lambda: [Answer("500 Broken", body=b"no")] * 3,
}


@pytest.mark.parametrize("name", list(DOWNLOADS))
@pytest.mark.parametrize("retries", [0, 2])
def test_downloads_end_as_upstreams(name: str, retries: int) -> None:
    as_upstream(lambda: downloaded(DOWNLOADS[name](), retries=retries), NAME)


def test_a_timeout_of_a_download() -> None:
    """Pieces that arrive in time keep it from running out, and a server that stalls lets it."""

    def stalls() -> Any:
        hold = threading.Event()
        answers = [Answer(headers=ETAG, body=BODY, hold=hold, before_hold=MIB)]
        found = downloaded(answers, stalls_at=MIB, retries=0, timeout=50)
        hold.set()
        return found

    upstream = as_upstream(stalls, NAME)
    assert upstream[0] == BODY[:MIB] and "timed out" in upstream[1][1]


def uploaded(answers: list[Answer], contents: Any, **options: Any) -> Any:
    """How an upload ends, and what the server was sent."""
    retries = options.pop("retries", 0)
    end: Any = None
    with serving(in_turn(answers)) as server:
        connection = connect(server.url, retries=retries)
        try:
            end = connection.put_object("c", "o", contents, **options)
        except Exception as error:
            end = type(error), str(error).replace(str(server.port), "PORT")
        bodies = [(request.body, request.headers.get("content-length")) for request in server.requests]
        connection.close()
    return end, bodies


def length_wrapper() -> Any:
    return swiftclient.utils.LengthWrapper(io.BytesIO(BODY + b"beyond"), len(BODY))


UPLOADS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "known size": (lambda: io.BytesIO(BODY), {"content_length": len(BODY)}),
    "less than there is": (lambda: io.BytesIO(BODY), {"content_length": 1_000_001}),
    "unknown size": (lambda: io.BytesIO(BODY), {}),
    "unseekable": (lambda: ImageFile(BODY), {"content_length": len(BODY)}),
    "with reset": (length_wrapper, {}),
    "bytes": (lambda: BODY, {}),
    "text": (lambda: "text", {}),
    "nothing": (lambda: None, {}),
    "an iterator": (lambda: iter([BODY[:MIB], BODY[MIB:]]), {}),
    "another chunk size": (lambda: io.BytesIO(BODY), {"chunk_size": 1000}),
}


@pytest.mark.parametrize("name", list(UPLOADS))
@pytest.mark.parametrize("first", [None, "503 Busy", "413 Too Large", "401 Unauthorized"])
def test_uploads_end_as_upstreams(name: str, first: str | None) -> None:
    """Also those that are sent again, from the start: what comes over the wire is the same."""
    make, options = UPLOADS[name]

    def upload() -> Any:
        answers = [Answer(first, body=b"no")] * bool(first) + [Answer("201 Created", ETAG)]
        return uploaded(answers, make(), retries=2, **options)

    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=UserWarning, module="swiftclient")
        as_upstream(upload, NAME)


def test_an_upload_that_is_refused_before_its_end() -> None:
    refusal = Answer("413 Too Large", body=b"no", early=True)
    end = as_upstream(lambda: uploaded([refusal], io.BytesIO(BODY), content_length=len(BODY))[0], NAME)
    assert end[0] is swiftclient.ClientException


def test_the_connection_is_used_again() -> None:
    def numbers() -> list[int]:
        answers = [Answer("201 Created", ETAG), Answer(headers=ETAG, body=BODY), Answer("204 No Content")]
        with serving(in_turn(answers)) as server:
            connection = connect(server.url)
            connection.put_object("c", "o", io.BytesIO(BODY), content_length=len(BODY))
            assert b"".join(connection.get_object("c", "o", resp_chunk_size=MIB)[1]) == BODY
            connection.delete_object("c", "o")
            return [request.connection for request in server.requests]

    with fastio.patched(NAME):
        assert numbers() == [0, 0, 0]


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
