"""``urllib3_sendfile`` and ``urllib3_blocks``: the bytes on the wire, positions and errors are those of upstream."""

import contextlib
import errno
import io
import os
import pathlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

requests = pytest.importorskip("requests", reason="requests is not installed: pip install '.[client]'")
urllib3 = pytest.importorskip("urllib3")

from urllib3.connection import HTTPConnection  # noqa: E402

import fastio  # noqa: E402
import tests.green_ssl  # noqa: E402, F401
from fastio import counters  # noqa: E402
from fastio.concurrency import current, native  # noqa: E402
from fastio.io import file_sending, uploads  # noqa: E402
from tests.conftest import MONKEY_PATCHED  # noqa: E402
from tests.patches.uploads import (  # noqa: E402
    BLOCK,
    BLOCKS,
    OK,
    RUNS,
    SENDFILE,
    Recorder,
    compare,
    counted,
    outcome,
    put,
    recorder,
)
from tests.stores.http_server import stock_block  # noqa: E402
from tests.stores.images import KIB, MIB, ImageFile, Ticker, content  # noqa: E402

SIZES = [0, 1, BLOCK, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, 5 * BLOCK, MIB - 1, MIB, MIB + 1, MIB + BLOCK, 5 * MIB + 3]


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "file"


OPENED: dict[str, Callable[[pathlib.Path], Any]] = {
    "buffered": lambda path: path.open("rb"),
    "small buffer": lambda path: path.open("rb", buffering=100),
    "large buffer": lambda path: path.open("rb", buffering=3 * MIB),
    "unbuffered": lambda path: path.open("rb", buffering=0),
    "read and written": lambda path: path.open("r+b"),
    "appended": lambda path: path.open("a+b"),
}


@settings(max_examples=40)
@given(
    size=st.integers(0, 3 * MIB) | st.sampled_from(SIZES),
    begin=st.integers(0, 2 * BLOCK),
    declared=st.none() | st.integers(0, 4 * MIB),
    opened=st.sampled_from(list(OPENED)),
    timeout=st.sampled_from([None, 60]),
    local=st.booleans(),
)
def test_every_file(
    size: int,
    begin: int,
    declared: int | None,
    opened: str,
    timeout: float | None,
    local: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Whatever its length is said to be: upstream sends all of it."""
    path = tmp_path_factory.mktemp("uploads") / "file"
    data = content(size)
    path.write_bytes(data)
    sent = max(0, size - begin)
    with recorder(sent) as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_sending, "is_local", lambda sock: local)

        def send() -> Any:
            with OPENED[opened](path) as file:
                file.seek(begin)
                length = sent if declared is None else declared
                return put(server.url, file, length, timeout=timeout), file.tell()

        returned, arrived = compare(server, send)
    assert returned == (200, max(size, begin))
    assert [body for _, body in arrived] == [data[begin:]]


@pytest.mark.parametrize("mode", ["r+b", "w+b"])
def test_changes_in_the_buffer_of_a_file_are_sent(mode: str, path: pathlib.Path) -> None:
    """Its descriptor does not have them yet."""
    data = content(MIB)
    changed = data[: 10 * BLOCK] + b"changed" + data[10 * BLOCK + 7 :]
    with recorder(MIB) as server:

        def send() -> Any:
            path.write_bytes(data)
            with path.open(mode, buffering=4 * MIB) as file:
                if mode == "w+b":
                    file.write(data)
                    file.flush()
                    file.seek(0)
                # The buffer has all of it, so that nothing after this flushes it.
                file.read(1)
                file.seek(10 * BLOCK)
                file.write(b"changed")
                file.seek(0)
                assert path.read_bytes() == data
                return put(server.url, file, MIB), file.tell()

        returned, arrived = compare(server, send)
        assert returned == (200, MIB)
        assert [body for _, body in arrived] == [changed]
        with fastio.patched(SENDFILE, strict=True):
            send()
            assert counted(SENDFILE) == (0, 0, {"input": 1})


@pytest.mark.skipif(MONKEY_PATCHED, reason="a green socket does not block, and upstream sends bytes without room")
def test_it_is_sent_by_the_kernel(path: pathlib.Path) -> None:
    path.write_bytes(content(5 * MIB))
    with recorder(5 * MIB) as server:
        for names, local, first in (([SENDFILE], True, stock_block()), ([BLOCKS, SENDFILE], False, BLOCK)):
            with (
                fastio.patched(names, strict=True),
                pytest.MonkeyPatch.context() as patch,
                path.open("rb") as file,
            ):
                counters.reset()
                if not local:
                    patch.setattr(file_sending, "is_local", lambda sock: False)
                assert put(server.url, file, 5 * MIB) == 200
                assert counted(SENDFILE) == (1, 5 * MIB - first, {})


@pytest.mark.skipif(not MONKEY_PATCHED, reason="there are green sockets only after monkey_patch()")
def test_a_green_socket(path: pathlib.Path) -> None:
    """Others run at least after each share, and upstream's code waits for room."""
    path.write_bytes(content(16 * MIB))
    with recorder(16 * MIB) as server, path.open("rb") as file:
        with fastio.patched(SENDFILE, strict=True, yield_bytes="64KiB"), Ticker() as ticker:
            counters.reset()
            assert put(server.url, file, 16 * MIB) == 200
            calls, size, fallbacks = counted(SENDFILE)
        assert (calls, fallbacks) == (1, {})
        assert size >= 4 * MIB
        assert counters.yields + counters.waits >= 16
        assert ticker.ticks >= counters.yields


class Talking(HTTPConnection):
    """Overrides ``send()``."""

    def send(self, data: Any) -> None:
        super().send(data)


def through(
    make: Callable[[Recorder], Any], length: int | None = MIB, **options: Any
) -> Callable[[Recorder, Any], Any]:
    """Return a function that sends a body by a connection of the caller's."""

    def send(server: Recorder, body: Any) -> Any:
        connection = make(server)
        try:
            headers = {} if length is None else {"Content-Length": str(length)}
            connection.request("PUT", "/", body=body, headers=headers, **options)
            return connection.getresponse().status
        finally:
            connection.close()

    return send


def plainly(server: Recorder) -> Any:
    return HTTPConnection("127.0.0.1", server.port)


def printing(server: Recorder) -> Any:
    connection = plainly(server)
    connection.set_debuglevel(1)
    return connection


def of_instance(server: Recorder) -> Any:
    connection = plainly(server)
    send = connection.send
    connection.send = lambda data: send(data)
    return connection


def text(path: pathlib.Path) -> Any:
    return path.open(encoding="latin-1")


def patched_read(path: pathlib.Path) -> Any:
    file = path.open("rb")
    read = file.read
    file.read = lambda size=-1: read(min(size, 1000))  # type: ignore[method-assign]
    return file


#: Those that :func:`pipe` has started.
CHILDREN: list[Any] = []


def pipe(path: pathlib.Path) -> Any:
    subprocess = native.module("subprocess")
    CHILDREN.append(subprocess.Popen(["cat", str(path)], stdout=subprocess.PIPE))
    return CHILDREN[-1].stdout


class Strings:
    """``read()`` returns text, although it is no text file."""

    def __init__(self, text: str) -> None:
        self._text = io.StringIO(text)

    def read(self, size: int) -> str:
        return self._text.read(size)


def unknown(path: pathlib.Path) -> Any:
    """It may read from anywhere, also from a source that gives a little now and then."""
    return ImageFile(path.read_bytes())


def swiftclients(body: Callable[[pathlib.Path], Any]) -> Callable[[pathlib.Path], Any]:
    def make(path: pathlib.Path) -> Any:
        return pytest.importorskip("swiftclient.utils").LengthWrapper(body(path), MIB)

    return make


def opened(path: pathlib.Path) -> Any:
    return path.open("rb")


def closed(path: pathlib.Path) -> Any:
    file = path.open("rb")
    file.close()
    return file


USUAL = through(plainly)
#: A body of a MiB, what sends it, and why each of the patches leaves it to upstream's code, if it is asked and does.
CASES: dict[str, tuple[Callable[[pathlib.Path], Any], Callable[[Recorder, Any], Any], str | None, str | None]] = {
    "as usual": (opened, USUAL, None, None),
    "another send()": (opened, through(lambda server: Talking("127.0.0.1", server.port)), "foreign", "foreign"),
    "a send() of the instance": (opened, through(of_instance), "foreign", "foreign"),
    "printed": (opened, through(printing), "foreign", "foreign"),
    "blocks of a chosen size": (
        opened, through(lambda server: HTTPConnection("127.0.0.1", server.port, blocksize=40_000)), "configured", None,
    ),
    "a time-out": (
        opened, through(lambda server: HTTPConnection("127.0.0.1", server.port, timeout=60)), "timeout", None,
    ),
    "a length that is no number": (opened, through(plainly, length="x"), "framing", "framing"),  # type: ignore[arg-type]
    "a short length": (opened, through(plainly, length=64 * KIB - 1), "small", "small"),
    "text": (text, USUAL, "input", "input"),
    "text in memory": (lambda path: io.StringIO(path.read_text("latin-1")), USUAL, "input", "input"),
    "strings": (lambda path: Strings(path.read_text("latin-1")), USUAL, "input", "input"),
    "unknown": (unknown, USUAL, "input", "input"),
    "swiftclient's of a file": (swiftclients(opened), USUAL, None, "input"),
    "swiftclient's of what is unknown": (swiftclients(unknown), USUAL, "input", "input"),
    "in memory": (lambda path: io.BytesIO(path.read_bytes()), USUAL, None, "input"),
    "an own read()": (patched_read, USUAL, "input", "input"),
    "pipe": (pipe, USUAL, "input", "input"),
    # The sizes of chunks are on the wire.
    "in chunks": (opened, through(plainly, length=None), "framing", "framing"),
    # Unreadable bodies count for nothing.
    "bytes": (pathlib.Path.read_bytes, USUAL, "", ""),
    "an array of bytes": (lambda path: bytearray(path.read_bytes()), USUAL, "", ""),
    "an iterator": (lambda path: iter([path.read_bytes()]), USUAL, "", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", list(CASES))
def test_bodies_of_each_patch(name: str, path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    make, send, of_blocks, of_sendfile = CASES[name]
    if name == "strings" and stock_block() == 8192:
        pytest.skip("the socket of http.client takes no text")
    path.write_bytes(b"0123456789abcdef" * (MIB // 16))

    def run() -> Any:
        body = make(path)
        found = outcome(lambda: send(server, body)), outcome(lambda: body.tell())
        if hasattr(body, "close"):
            body.close()
        return *found, capsys.readouterr().out.replace(str(server.port), "PORT")

    with recorder(None if name == "in chunks" else MIB) as server:
        returned, arrived = compare(server, run)
        assert returned[0] == 200
        assert name == "in chunks" or [body for _, body in arrived] == [path.read_bytes()]
        for patch, reason in ((BLOCKS, of_blocks), (SENDFILE, of_sendfile)):
            with fastio.patched(patch, strict=True):
                counters.reset()
                run()
                calls, _, fallbacks = counted(patch)
                assert (calls, fallbacks) == ((1, {}) if reason is None else (0, {reason: 1} if reason else {}))
    while CHILDREN:
        assert CHILDREN.pop().wait(30) == 0


@pytest.mark.parametrize("make", [closed, lambda path: path.open("ab")], ids=["closed", "only written"])
def test_a_file_that_cannot_be_read_has_upstreams_error(make: Any, path: pathlib.Path) -> None:
    path.write_bytes(content(MIB))
    found = []
    with recorder(MIB) as server:
        for names in RUNS:
            with fastio.patched(names, strict=True), contextlib.closing(make(path)) as file:
                found.append(outcome(partial(USUAL, server, file)))
    assert issubclass(found[0][0], ValueError) and found == [found[0]] * len(RUNS)


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Of a connection, whose buffers are small."""
    pair = socket.socketpair()
    yield pair
    for end in pair:
        end.close()


@pytest.mark.parametrize("names", RUNS, ids=lambda names: "+".join(names) or "stock")
def test_a_peer_that_goes_away(names: list[str], path: pathlib.Path, ends: tuple[socket.socket, socket.socket]) -> None:
    """The error is what urllib3 knows, and ignores to read an early answer."""
    path.write_bytes(content(16 * MIB))
    own, peer = ends
    connection = HTTPConnection("localhost", timeout=None)
    connection.sock = own

    def go() -> None:
        left = 2 * MIB
        while left > 0:
            left -= len(peer.recv(64 * KIB))
        # Closed with unread data, it would end the connection with one of two errors.
        peer.shutdown(socket.SHUT_RD)
        # There is room again, by which a greenlet that waits for some hears of it.
        while peer.recv(64 * KIB):
            pass

    going = threading.Thread(target=go, daemon=True)
    going.start()
    with fastio.patched(names, strict=True), path.open("rb") as file:
        with pytest.raises(BrokenPipeError) as caught:
            connection.request("PUT", "/", body=file, headers={"Content-Length": str(16 * MIB)})
        assert caught.value.args == (errno.EPIPE, os.strerror(errno.EPIPE))
        if not (MONKEY_PATCHED and SENDFILE in names):
            # The block that could not be sent has been read.
            assert file.tell() % (MIB if names == [BLOCKS] else stock_block()) == 0
        assert MIB < file.tell() < 16 * MIB
    going.join(30)


@pytest.mark.parametrize("names", RUNS, ids=lambda names: "+".join(names) or "stock")
def test_a_peer_that_stalls(names: list[str], path: pathlib.Path, ends: tuple[socket.socket, socket.socket]) -> None:
    """The time-out is the socket's own."""
    path.write_bytes(content(16 * MIB))
    own, _ = ends
    connection = HTTPConnection("localhost", timeout=0.3)
    connection.sock = own
    with fastio.patched(names, strict=True), path.open("rb") as file:
        with pytest.raises(TimeoutError, match="timed out"):
            connection.request("PUT", "/", body=file, headers={"Content-Length": str(16 * MIB)})
        if SENDFILE in names:
            assert counted(SENDFILE)[0] == 1


def test_no_more_than_a_block_waits_for_a_time_out(
    path: pathlib.Path, ends: tuple[socket.socket, socket.socket]
) -> None:
    """A larger one would have less time for a byte."""
    path.write_bytes(content(16 * MIB))
    own, _ = ends
    own.settimeout(60)
    connection = HTTPConnection("localhost")
    connection.sock = own
    with path.open("rb") as file:
        body = uploads.Sent(file, connection, counters.UNCOUNTED)
        assert body.read(BLOCK) == content(16 * MIB)[:BLOCK]
        # All bytes with room are gone now, and this is the rest.
        data = body.read(MIB)
        assert len(data) == BLOCK
        assert data == content(16 * MIB)[file.tell() - BLOCK : file.tell()]
        assert file.tell() > 2 * BLOCK
        assert len(body.read(100)) == 100


@pytest.mark.parametrize("size", [4 * BLOCK, BLOCK + 200])
def test_where_a_file_is_after_an_error(
    size: int, path: pathlib.Path, ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Upstream has read the block that it cannot send."""
    path.write_bytes(content(size))
    connection = HTTPConnection("localhost")
    connection.sock = ends[0]
    connection.sock.settimeout(60)
    answers = [100, OSError(errno.EPIPE, os.strerror(errno.EPIPE))]

    def send(*args: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(file_sending, "send", send)
    with path.open("rb") as file:
        file.seek(5)
        body = uploads.Sent(file, connection, counters.UNCOUNTED)
        assert len(body.read(BLOCK)) == BLOCK
        with pytest.raises(BrokenPipeError):
            body.read(BLOCK)
        assert file.tell() == min(5 + 2 * BLOCK, size)


def test_a_native_socket_in_a_hub_is_left_to_upstream(path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Upstream's code waits for it in the kernel, but nothing of ours does."""
    path.write_bytes(content(MIB))
    monkeypatch.setattr(current, "may_block", lambda: False)
    connection = HTTPConnection("localhost")
    connection.sock, peer = native.module("socket").socketpair()
    counts = counters.Tally("test")
    with connection.sock, peer, path.open("rb") as file:
        body = uploads.Sent(file, connection, counts)
        assert [len(body.read(BLOCK)) for _ in range(3)] == [BLOCK] * 3
        assert (counts.calls, counts.fallbacks[counters.Reason.HUB]) == (0, 1)


@pytest.mark.parametrize("after", [0, 2])
def test_files_that_cannot_be_sent_are_read(after: int, path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(content(5 * MIB))
    send, calls = file_sending.send, []

    def refuse(*args: Any) -> int:
        calls.append(args)
        if len(calls) > after:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return send(*args)

    monkeypatch.setattr(file_sending, "send", refuse)
    with recorder(5 * MIB) as server, fastio.patched(SENDFILE, strict=True), path.open("rb") as file:
        assert put(server.url, file, 5 * MIB) == 200
        assert counted(SENDFILE)[2] == {"refused": 1}
        assert server.recorded[0][1] == content(5 * MIB)


def test_a_file_that_grows(path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is sent to its end, wherever that is then."""
    path.write_bytes(content(MIB))
    send = file_sending.send

    def growing(*args: Any) -> int:
        sent = send(*args)
        if path.stat().st_size == MIB:
            with path.open("ab") as file:
                file.write(b"x" * MIB)
        return sent

    monkeypatch.setattr(file_sending, "send", growing)
    with recorder(2 * MIB) as server, fastio.patched(SENDFILE, strict=True), path.open("rb") as file:
        assert put(server.url, file, MIB) == 200
        assert server.recorded[0][1] == content(MIB) + b"x" * MIB
        assert file.tell() == 2 * MIB


def test_others_may_move_in_the_file(path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with upstream's code it is sent from where it is, which can be asked at any time."""
    path.write_bytes(content(3 * MIB))
    send, positions = file_sending.send, []
    with recorder(2 * MIB) as server, fastio.patched(SENDFILE, strict=True), path.open("rb") as file:

        def moving(*args: Any) -> int:
            positions.append(file.tell())
            if len(positions) == 2:
                file.seek(3 * MIB)
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            return send(*args)

        monkeypatch.setattr(file_sending, "send", moving)
        server.size = None
        connection = plainly(server)
        connection.request("PUT", "/", body=file, headers={"Content-Length": str(3 * MIB)})
        connection.close()
        assert positions[0] == stock_block()
        assert positions[1] > stock_block()
        assert file.tell() == 3 * MIB


@pytest.mark.parametrize("size", [MIB, 3 * MIB + 1])
def test_swiftclients_uploads_are_read_by_the_mib(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    utils = pytest.importorskip("swiftclient.utils")
    asked = []
    upstreams = utils.LengthWrapper.read

    def read(self: Any, size: int) -> bytes:
        asked.append(size)
        return upstreams(self, size)

    monkeypatch.setattr(utils.LengthWrapper, "read", read)

    def send() -> int:
        return put(server.url, utils.LengthWrapper(io.BytesIO(content(size)), size), size)

    with recorder(size) as server:
        _, arrived = compare(server, send, [[], [BLOCKS]])
        assert [body for _, body in arrived] == [content(size)]
        assert set(asked) == {stock_block(), MIB}
        with fastio.patched(BLOCKS, strict=True):
            send()
            assert counted(BLOCKS) == (1, size, {})


def by_requests(server: Recorder, file: Any, url: str = "", **options: Any) -> int:
    return requests.put(url or server.url, data=file, **options).status_code


def by_its_tunnel(server: Recorder, file: Any, **options: Any) -> Any:
    if server.url.startswith("https"):
        return by_requests(server, file, proxies={"https": f"http://127.0.0.1:{server.port}"}, **options)
    # A pool asks for a tunnel only where there is TLS in it.
    connection = plainly(server)
    connection.set_tunnel("upload.test", 80)
    return through(lambda server: connection, 2 * MIB)(server, file)


def again_if_busy(server: Recorder, file: Any, **options: Any) -> Any:
    file.seek(5)
    retries = urllib3.util.Retry(total=3, backoff_factor=0, status_forcelist=[503])
    return put(server.url, file, 2 * MIB - 5, retries=retries)


def by_a_proxy(server: Recorder, file: Any, **options: Any) -> int:
    return by_requests(server, file, "http://upload.test/", proxies={"http": server.url})


def asking_first(server: Recorder, file: Any, **options: Any) -> int:
    return by_requests(server, file, headers={"Expect": "100-continue"})


BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
MOVED = b"HTTP/1.1 307 Moved\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n"
EXPECT = b"\r\nExpect: 100-continue\r\n"
#: How a file is uploaded, the server's options, the status that comes, what is in the first request's headers, how
#: often the file is sent, and why it is left to upstream's code with TLS and without, if it is.
WAYS: dict[str, tuple[Callable[..., Any], dict[str, Any], int, bytes, int, str | None, str | None]] = {
    "as usual": (by_requests, {}, 200, b"PUT / HTTP/1.1", 1, None, "tls"),
    # No file goes into it unchanged: only the size of the blocks is another.
    "by a tunnel": (by_its_tunnel, {"tunnel": True}, 200, b"PUT", 1, "foreign", "foreign"),
    "by a proxy": (by_a_proxy, {}, 200, b"PUT http://upload.test/ HTTP/1.1", 1, None, None),
    "retried": (again_if_busy, {"answers": [BUSY, BUSY, OK]}, 200, b"PUT / HTTP/1.1", 3, None, None),
    "redirected": (by_requests, {"answers": [MOVED, OK]}, 200, b"PUT / HTTP/1.1", 2, None, None),
    # Upstream does not wait for what the server says before it reads the body.
    "continued": (asking_first, {"early": b"HTTP/1.1 100 Continue\r\n\r\n"}, 200, EXPECT, 1, None, None),
    "without a word": (asking_first, {"early": b""}, 200, EXPECT, 1, None, None),
    # The end comes later, so that the program hears of it when all has been read.
    "refused early": (asking_first, {"early": b"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 2\r\n\r\n",
                                     "answers": [b"no"]}, 417, EXPECT, 1, None, None),
    "answered early": (asking_first, {"early": OK[:-2], "answers": [OK[-2:]]}, 200, EXPECT, 1, None, None),
}  # fmt: skip


@pytest.mark.parametrize(
    ("context", "name"),
    [*(("http", name) for name in WAYS), ("https", "as usual"), ("https", "by a tunnel")],
    indirect=["context"],
)
def test_ways_to_a_server(
    name: str, path: pathlib.Path, context: ssl.SSLContext | None, own_certificates: None, request: Any
) -> None:
    way, options, status, head, times, of_plain, of_tls = WAYS[name]
    reason = of_tls if context else of_plain
    trust = {"verify": str(request.getfixturevalue("certificate"))} if context else {}
    path.write_bytes(content(2 * MIB))

    def send() -> Any:
        with path.open("rb") as file:
            return way(server, file, **trust), file.tell()

    begin = 5 if way is again_if_busy else 0
    with recorder(2 * MIB - begin, context=context, **options) as server:
        returned, arrived = compare(server, send)
        assert returned == (status, 2 * MIB)
        assert [body for _, body in arrived] == [content(2 * MIB)[begin:]] * times
        assert head in arrived[0][0]
        assert [each.split()[0] for each in server.tunnels] == [b"CONNECT"] * (len(RUNS) if "tunnel" in options else 0)
        server.recorded.clear()
        with fastio.patched([BLOCKS, SENDFILE], strict=True):
            send()
            calls, size, fallbacks = counted(SENDFILE)
            assert (calls, fallbacks) == ((0, {reason: times}) if reason else (times, {}))
            assert not reason or (size, counted(BLOCKS)) == (0, (1, 2 * MIB, {}))
