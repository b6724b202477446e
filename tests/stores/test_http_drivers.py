"""``store_http``, ``store_swift``, ``store_vmware``: bodies of HTTP, in large chunks, with the errors of upstream.

Each case of a server and of a body is for all drivers that have such bodies.
"""

import importlib
import io
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

pytest.importorskip("glance_store")
pytest.importorskip("requests")

import fastio  # noqa: E402
from fastio.io import lowwater  # noqa: E402
from tests.outcome import as_upstream  # noqa: E402
from tests.stores.http_server import Answer, in_turn, serving, stock_block  # noqa: E402
from tests.stores.images import KIB, MIB, ImageFile, content, sizes  # noqa: E402

CHUNK = 100_000
#: Bytes of a chunk of upstream's, of an image of unknown size.
STOCK = 64 * KIB
#: ``swift_store_large_object_chunk_size`` = 1, in bytes.
SEGMENT = 1000 * 1024


def patched(driver: str, chunk: int | None = CHUNK) -> Any:
    """The driver's patch, with that setting."""
    return fastio.patched(f"store_{driver}", store_chunk_sizes=f"{driver}={chunk}" if chunk else "")


@pytest.mark.parametrize("driver", ["http", "swift"])
def test_the_kernel_gathers_a_chunk(open_store: Any, marks: list[int], driver: str) -> None:
    store = open_store(driver)
    url = store.place(content(8 * MIB))
    with fastio.patched(f"store_{driver}"):
        store.read(url)
    counts = fastio.metrics().patches[f"store_{driver}"]
    assert (counts.bytes, counts.fallbacks) == (8 * MIB, {})
    assert marks[:8] == [lowwater.MOST] * 7 + [0]
    marks.clear()
    store.read(url)
    assert marks == []


@pytest.mark.parametrize("driver", ["swift", "vmware"])
def test_the_blocks_of_an_upload(open_store: Any, sent: list[int], driver: str) -> None:
    store, data = open_store(driver), content(3 * MIB + 2000)
    with patched(driver):
        url = store.add(data).url
        assert sent == sizes(len(data), CHUNK)
        assert store.read(url) == data
    sent.clear()
    store.add(data)
    assert set(sent[:-1]) == {stock_block()}


@pytest.mark.parametrize(
    ("driver", "options", "parts"),
    [
        ("swift", {"swift_store_large_object_chunk_size": 1}, (SEGMENT, 300_000)),
        ("vmware", {}, (3 * MIB + 2000,)),
    ],
    ids=["swift", "vmware"],
)
@pytest.mark.parametrize("chunk", [CHUNK, None])
def test_the_chunks_of_an_upload_of_unknown_size(
    open_store: Any, sent: list[int], driver: str, options: dict[str, Any], parts: tuple[int, ...], chunk: int | None
) -> None:
    store, data = open_store(driver, **options), content(sum(parts))
    with patched(driver, chunk):
        url = store.add(io.BytesIO(data)).url
        pieces = [each for part in parts for each in sizes(part, chunk or 256 * KIB)]
        # requests before 2.32 sends the frame by itself.
        assert sent in (pieces, [len(b"%x\r\n\r\n" % each) + each for each in pieces])
        assert store.read(url) == data
    sent.clear()
    store.add(io.BytesIO(data))
    assert max(sent) in (STOCK, STOCK + len(b"10000\r\n\r\n"))


@pytest.mark.parametrize("patch", ["store_vmware", []])
def test_certificates_are_checked(vmware_store: Any, patch: Any) -> None:
    import requests
    import urllib3
    from glance_store._drivers import vmware_datastore as vmware

    certificate = vmware_store.driver.ca_file
    with fastio.patched(patch):
        url = f"https://127.0.0.1:{vmware_store.access['port']}/folder/x"
        with pytest.raises(requests.exceptions.SSLError):
            vmware.new_session().put(url, data=io.BytesIO(content(MIB)))
        assert vmware.new_session(ca_file=certificate).get(url).status_code in (401, 404)
        with pytest.warns(urllib3.exceptions.InsecureRequestWarning):
            assert vmware.new_session(insecure=True).get(url).status_code in (401, 404)


# Servers that fail, and the clients' ways to go on


def ended(call: Callable[[Any], Any], answers: list[Answer], whole: bool = True) -> Any:
    """The bytes that ``call(server)`` yields, how it ends, and the requests: ``whole`` if their bodies are read."""
    found, end = b"", None
    with serving(in_turn(answers)) as server:
        try:
            for each in call(server):
                found += each
        except Exception as error:
            end = type(error), str(error).replace(str(server.port), "PORT")
        names = ("range", "if-match", "content-length") if whole else ()
        return found, end, [
            (each.method, each.path, each.connection, *map(each.headers.get, names), each.body if whole else b"")
            for each in server.requests
        ]  # fmt: skip


def client(server: Any, retries: int) -> Any:
    """swiftclient's, for that server."""
    swiftclient = pytest.importorskip("swiftclient")
    options = {"starting_backoff": 0, "max_backoff": 0, "retries": retries, "preauthtoken": "token"}
    return swiftclient.Connection(preauthurl=f"{server.url}/v1/account", **options)


def by_http(server: Any, fixture: Any) -> Any:
    return fixture("http_store").get(f"{server.url}/image")[0]


def by_swift(server: Any, fixture: Any, retries: int = 0) -> Iterator[bytes]:
    connection = client(server, retries)
    yield from connection.get_object("c", "o", resp_chunk_size=256 * KIB)[1]
    connection.close()


#: How a driver downloads, and its patch and settings.
WAYS: dict[str, tuple[Callable[..., Any], str, str]] = {
    "http, small chunks": (by_http, "store_http", "*=256KiB"),
    "http, large chunks": (by_http, "store_http", "*=4MiB"),
    "swift": (by_swift, "store_swift", ""),
    "swift, tried again": (partial(by_swift, retries=2), "store_swift", ""),
}
BODY = content(3 * MIB)
ETAG = {"ETag": "etag"}


def whole(**more: Any) -> Answer:
    return Answer(headers=ETAG, body=BODY, **more)


def rest(start: int) -> Answer:
    headers = {**ETAG, "Content-Range": f"bytes {start}-{len(BODY) - 1}/{len(BODY)}"}
    return Answer("206 Partial Content", headers, BODY[start:])


#: Answers to the requests of a download, the last of them to all that follow.
ANSWERS: dict[str, list[Answer]] = {
    "whole": [whole()],
    "of nothing": [Answer(headers=ETAG)],
    **{f"broken off at {kept}": [whole(breaks_off=kept)] for kept in (
        0, 1, 64 * KIB, 256 * KIB, 256 * KIB + 1, 700_000, 1_500_000, 3 * MIB - 1
    )},
    "broken off and resumed": [whole(breaks_off=MIB), rest(MIB)],
    "broken off within a chunk": [whole(breaks_off=700_000), rest(512 * KIB), rest(700_000)],
    "begun anew": [whole(breaks_off=MIB), whole()],
    "an error, then all": [Answer("503 Busy", body=b"x" * 300_000), whole()],
    "not found": [Answer("404 Not Found", body=b"no")],
    "error": [Answer("500 Broken", body=b"no")],
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("way", WAYS)
def test_downloads_end_as_upstreams(request: pytest.FixtureRequest, marks: list[int], way: str, name: str) -> None:
    """The bytes, the exception and its text, and the requests; the chunk size does not matter to any of them."""
    start, patch, chunks = WAYS[way]
    answers = ANSWERS[name] + ANSWERS[name][-1:] * 2

    def download() -> Any:
        return ended(lambda server: start(server, request.getfixturevalue), answers)

    data, end, asked = as_upstream(download, patch, store_chunk_sizes=chunks)
    first = answers[0]
    if len(asked) == 1:
        assert (end is None) == (first.status == "200 OK" and first.breaks_off is None)
        assert data == (first.body[: first.breaks_off] if first.status == "200 OK" else b"")
    arrived = any(each.status.startswith("2") and each.body for each in answers[: len(asked)])
    assert any(marks) == (arrived and "large" not in way)


def test_a_time_out_of_a_download(marks: list[int]) -> None:
    """Pieces that arrive in time keep it from running out, and a server that stalls lets it.

    A socket that has one is therefore left alone: with a mark it would run out while pieces arrive.
    """

    def pieces(server: Any) -> Iterator[bytes]:
        connection = client(server, 0)
        connection.timeout = 50
        found = 0
        for piece in connection.get_object("c", "o", resp_chunk_size=256 * KIB)[1]:
            yield piece
            found += len(piece)
            if found == MIB:
                # Nothing more comes, for which a long time-out need not be waited for.
                connection.http_conn[1].resp.raw.connection.sock.settimeout(0.3)

    def stalls() -> Any:
        hold = threading.Event()
        found = ended(pieces, [whole(hold=hold, before_hold=MIB)])
        hold.set()
        return found

    data, end, _ = as_upstream(stalls, "store_swift")
    assert data == BODY[:MIB] and "timed out" in end[1] and marks == []


def test_a_slow_server_is_waited_for(http_store: Any) -> None:
    """Less than a chunk has arrived, and no more comes for a while: nothing is lost and nothing hangs."""
    hold = threading.Event()
    with serving(in_turn([whole(hold=hold, before_hold=100_000)])) as server, fastio.patched("store_http"):
        chunks, _ = http_store.get(f"{server.url}/image")
        timer = threading.Timer(0.2, hold.set)
        timer.start()
        assert b"".join(chunks) == BODY
        timer.join()


def test_a_reader_that_stops_early_closes_the_connection(http_store: Any) -> None:
    answers = [Answer(body=content(16 * MIB)), Answer(body=b"more")]
    with serving(in_turn(answers)) as server, fastio.patched("store_http"):
        chunks, _ = http_store.get(f"{server.url}/image")
        assert len(chunks.another()) == MIB
        chunks.wrapped.close()
        assert http_store.read(f"{server.url}/image") == b"more"
        assert [request.connection for request in server.requests] == [0, 1]


def test_the_connection_is_used_again() -> None:
    answers = [Answer("201 Created", ETAG), whole(), Answer("204 No Content")]
    with serving(in_turn(answers)) as server, fastio.patched("store_swift"):
        connection = client(server, 0)
        connection.put_object("c", "o", io.BytesIO(BODY), content_length=len(BODY))
        assert b"".join(connection.get_object("c", "o", resp_chunk_size=MIB)[1]) == BODY
        connection.delete_object("c", "o")
        assert [request.connection for request in server.requests] == [0, 0, 0]


def length_wrapper() -> Any:
    utils = pytest.importorskip("swiftclient.utils")
    return utils.LengthWrapper(io.BytesIO(BODY + b"beyond"), len(BODY))


#: Bodies of an upload, and how they are given to swiftclient.
BODIES: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
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
#: The answers to an upload that a server refuses at first.
REFUSALS = [None, "503 Busy", "413 Too Large", "401 Unauthorized", "403 Forbidden", "409 Conflict", "500 Broken"]


UPLOADS = [
    *(("vmware", "known size", refusal, False) for refusal in REFUSALS),
    *(("swift", body, refusal, False) for body in BODIES for refusal in REFUSALS[:4]),
    # Before the end of the body
    *((driver, "known size", refusal, True) for driver in ("vmware", "swift") for refusal in REFUSALS[2:4]),
]


@pytest.mark.parametrize(("driver", "body", "refusal", "early"), UPLOADS)
def test_uploads_end_as_upstreams(
    request: Any, monkeypatch: pytest.MonkeyPatch, driver: str, body: str, refusal: str | None, early: bool
) -> None:
    """Also those that are sent again, from the start: what comes over the wire is the same."""
    answers = [Answer(refusal, body=b"no", early=early)] * bool(refusal) + [Answer("201 Created", ETAG)] * 3
    make, options = BODIES[body]

    def put(server: Any) -> Iterator[bytes]:
        if driver == "swift":
            # One that is sent again may meet the end of the connection first.
            connection = client(server, 0 if early else 2)
            yield str(connection.put_object("c", "o", make(), **options)).encode()
            connection.close()
        else:
            # It speaks no TLS, which is set in the driver here.
            store = request.getfixturevalue("vmware_store")
            location = importlib.import_module(type(store.driver).__module__).StoreLocation
            monkeypatch.setattr(location, "https_url", f"{server.url}/folder/x")
            yield str(store.add(make(), "same-id", size=len(BODY))).encode()

    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=UserWarning, module="swiftclient")
        _, end, asked = as_upstream(lambda: ended(put, answers, whole=not early), f"store_{driver}")
    assert asked and (not early or end is not None)
