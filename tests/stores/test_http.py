"""``fastio.io.http_bodies``: larger blocks for one session, and bodies read with few wake-ups."""

import contextlib
import io
import pickle
import socket
import threading
import time
import types
from collections.abc import Callable
from typing import Any

import pytest

requests = pytest.importorskip("requests")
urllib3 = pytest.importorskip("urllib3")

from fastio.io import http_bodies, lowwater  # noqa: E402
from tests.stores.http_server import Answer, Request, in_turn, serving, stock_block  # noqa: E402
from tests.stores.images import KIB, MIB  # noqa: E402


class Body:
    """A body of ``size`` bytes."""

    def __init__(self, size: int) -> None:
        self.left = size

    def __len__(self) -> int:
        return self.left

    def read(self, size: int = -1) -> bytes:
        count = self.left if size < 0 else min(size, self.left)
        self.left -= count
        return bytes(count)


NOWHERE = "http://no.such.host.invalid/x"


def ok(request: Request) -> Answer:
    return Answer(body=b"done")


class Live:
    """A body that comes in ``parts``, the next one when :attr:`goes_on` is set; a read waits for what it asks for."""

    def __init__(self, *parts: bytes) -> None:
        self._parts = list(parts)
        self._there = b""
        #: released when a read begins to wait
        self.waits = threading.Semaphore(0)
        self.goes_on = threading.Semaphore(0)

    def read(self, size: int = -1) -> bytes:
        while len(self._there) < size and self._parts:
            self.waits.release()
            self.goes_on.acquire(timeout=60)
            self._there += self._parts.pop(0)
        data, self._there = self._there[:size], self._there[size:]
        return data


@pytest.mark.parametrize("timeout", [None, 60])
@pytest.mark.parametrize("part", [stock_block(), 3 * stock_block()])
def test_a_slow_body_is_sent_while_it_comes(part: int, timeout: float | None) -> None:
    """Nothing is held back for longer than until the next part, which has to be waited for."""
    body = Live(*[bytes(part)] * 5)
    received: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener, requests.Session() as session:
        http_bodies.enlarge_blocks(session, MIB)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        headers = {"Content-Length": str(5 * part)}
        arguments = {"data": body, "headers": headers, "timeout": timeout}
        sender = threading.Thread(target=session.put, args=(url,), kwargs=arguments)
        sender.start()
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(60)
            data = b""
            for count in range(5):
                # The last part that has come may be held back in part, those before are sent.
                while len(data.partition(b"\r\n\r\n")[2]) < (count - 1) * part:
                    data += connection.recv(MIB)
                received.append(len(data))
                assert body.waits.acquire(timeout=60)
                time.sleep(0.05)
                body.goes_on.release()
            while len(data.partition(b"\r\n\r\n")[2]) < 5 * part:
                data += connection.recv(MIB)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            sender.join(60)
    assert len(received) == 5


#: A request that a session makes twice, and the size of the blocks in which it sends.
SENDS: dict[str, tuple[Callable[[Any, str], Any], int]] = {
    "as usual": (lambda session, url: session.put(url, data=Body(MIB)), MIB),
    "pickled": (lambda session, url: pickle.loads(pickle.dumps(session)).put(url, data=Body(MIB)), MIB),
    "by a proxy": (lambda session, url: session.put(NOWHERE, data=Body(MIB), proxies={"http": url}), MIB),
    # It is for the size of upstream's sends.
    "a time-out": (lambda session, url: session.put(url, data=Body(MIB), timeout=60), stock_block()),
    "a time-out, unknown size": (
        lambda session, url: session.put(url, data=io.BytesIO(bytes(MIB)), timeout=60), stock_block(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", SENDS)
def test_the_blocks_of_a_session(sent: list[int], how: str) -> None:
    send, size = SENDS[how]
    with serving(ok) as server, requests.Session() as session:
        http_bodies.enlarge_blocks(session, MIB)
        for _ in range(2):
            send(session, server.url)
        assert set(sent) == {size}
        paths = [(request.path, request.connection) for request in server.requests]
        assert how == "pickled" or paths == [(NOWHERE if how == "by a proxy" else "/", 0)] * 2


def test_the_adapter_keeps_every_property() -> None:
    session = requests.Session()
    retries = urllib3.util.Retry(total=3, backoff_factor=0.5)
    adapter = requests.adapters.HTTPAdapter(pool_connections=3, pool_maxsize=5, max_retries=retries, pool_block=True)
    adapter.config = {"some": "thing"}
    session.mount("http://", adapter)
    prefixes = list(session.adapters)
    http_bodies.enlarge_blocks(session, 256 * KIB)
    new = session.get_adapter("http://host/")
    assert type(new) is http_bodies.BlockAdapter
    assert list(session.adapters) == prefixes
    assert new.max_retries is retries
    assert new.config == {"some": "thing"}
    kept = new.poolmanager.connection_from_url("http://127.0.0.1:1/")
    before = adapter.poolmanager.connection_from_url("http://127.0.0.1:1/")
    assert (kept.pool.maxsize, kept.block) == (before.pool.maxsize, before.block) == (5, True)
    assert new.poolmanager.pools._maxsize == adapter.poolmanager.pools._maxsize == 3
    assert {**vars(new), "poolmanager": None, "blocksize": None} == {
        **vars(adapter), "poolmanager": None, "blocksize": None,
    }  # fmt: skip


def test_an_adapter_of_the_program_stays() -> None:
    class Own(requests.adapters.HTTPAdapter):  # type: ignore[name-defined]
        pass

    session = requests.Session()
    own = Own()
    session.mount("http://", own)
    http_bodies.enlarge_blocks(session, 256 * KIB)
    assert session.get_adapter("http://host/") is own
    assert type(session.get_adapter("https://host/")) is http_bodies.BlockAdapter
    http_bodies.enlarge_blocks(object(), 256 * KIB)


def test_blocks_of_urllib3_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pool managers know no block size, but its connections do."""
    made: list[dict[str, Any]] = []
    manager = urllib3.PoolManager()
    manager.pool_classes_by_scheme = {"http": lambda host, port, **options: made.append(options)}
    http_bodies._enlarge_1(manager, 256 * KIB)
    manager.pool_classes_by_scheme["http"]("host", 80, maxsize=1)
    assert made == [{"maxsize": 1, "blocksize": 256 * KIB}]


def get(url: str, **options: Any) -> Any:
    return requests.get(url, stream=True, **options)


@pytest.mark.parametrize(("arguments", "size"), [((), MIB), ((None,), MIB), ((0,), 0)])
def test_without_a_size_it_reads_as_ever(marks: list[int], arguments: Any, size: int) -> None:
    with serving(in_turn([Answer(body=bytes(MIB))])) as server:
        assert len(http_bodies.Body(get(server.url).raw).read(*arguments)) == size
    assert marks == []


class Layer(socket.socket):
    """TLS reads a record's few bytes of head first, for which a mark of the body's would be too high at the end."""


@pytest.mark.parametrize(
    ("left", "kind", "expected"),
    [
        (64 * MIB, socket.socket, [lowwater.MOST]),
        (None, socket.socket, []),
        (64 * MIB, Layer, []),
        (64 * MIB, None, []),
    ],
    ids=["usual", "of unknown length", "more than a socket", "no socket"],
)
def test_where_the_kernel_gathers_a_body(marks: list[int], left: int | None, kind: Any, expected: list[int]) -> None:
    with contextlib.closing((kind or io.BytesIO)()) as opened:
        connection = types.SimpleNamespace(sock=opened if kind else None)
        raw = types.SimpleNamespace(length_remaining=left, connection=connection, read=lambda amt: b"%a" % amt)
        body = http_bodies.Body(raw)
        assert (body.read(MIB), body.read()) == (b"%d" % MIB, b"None")
    assert marks == expected
