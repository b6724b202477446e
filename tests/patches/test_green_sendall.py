"""``green_sendall``: what is left of a buffer is sent in place, and a peer that always has room is no obstacle."""

import array
import errno
import socket as plain_socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fastio
from fastio import counters
from tests.child import MIB, data
from tests.outcome import as_upstream, outcome, peak
from tests.stores.images import Ticker

eventlet = pytest.importorskip("eventlet")

from eventlet import hubs  # noqa: E402
from eventlet.green import socket  # noqa: E402
from eventlet.greenio import GreenSocket  # noqa: E402

KIB = 1 << 10
#: The standard library's own, also where eventlet has monkey patched.
_socket = eventlet.patcher.original("socket").socket

pytestmark = pytest.mark.fast_path("bytes_out", "writes")


@pytest.fixture
def pair() -> Iterator[tuple[Any, Any]]:
    """Two green sockets that are connected."""
    one, two = socket.socketpair()
    with one, two:
        yield one, two


def received(sock: Any) -> Any:
    """A greenlet that reads ``sock`` to its end."""

    def read() -> bytes:
        parts = []
        while part := sock.recv(100_003):
            parts.append(part)
        return b"".join(parts)

    return eventlet.spawn(read)


class Room(_socket):  # type: ignore[misc, valid-type]
    """A socket whose peer always has room, for so many bytes at a time."""

    room = 64 * KIB

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[int, Any]] = []
        self.sent = b""

    def send(self, data: Any, flags: int = 0) -> int:
        view = memoryview(data).cast("B")[: self.room]
        self.calls.append((len(view), flags))
        self.sent += view
        return len(view)


@pytest.fixture
def room() -> Iterator[tuple[Any, Room]]:
    """A green socket around a :class:`Room`, and that."""
    inner = Room()
    with GreenSocket(inner) as sock:
        yield sock, inner


def test_the_rest_is_not_copied(hub: Any) -> None:
    inner, payload = Room(), bytes(8 * MIB)
    inner.send = lambda view, flags=0: min(len(view), 64 * KIB)  # type: ignore[assignment, method-assign, misc]
    with GreenSocket(inner) as sock:
        assert peak(lambda: sock.sendall(payload)) > 7 * MIB, "upstream has mended it, and the fix can go"
        with fastio.patched("green_sendall"):
            assert peak(lambda: sock.sendall(payload)) < MIB


def test_a_bytearray_is_free_while_others_run(patched: Any, hub: Any, pair: Any) -> None:
    """As upstream has it: what another greenlet adds meanwhile is no BufferError."""
    one, two = pair
    payload = bytearray(data(1, 5_000_000))
    sender = eventlet.spawn(one.sendall, payload)
    eventlet.sleep(0)
    assert not sender.dead
    payload += b"more"
    reader = received(two)
    sender.wait()
    one.close()
    assert reader.wait()[:5_000_000] == data(1, 5_000_000)


def test_a_bytearray_that_is_changed_while_the_rest_waits(hub: Any) -> None:
    """Data that the kernel has not taken is copied before others run, like upstream's."""

    def go() -> bytes:
        inner = Room()
        send = inner.send

        def refuse_until_changed(data: Any, flags: int = 0) -> int:
            if inner.sent and payload[:1] == b"o":
                raise BlockingIOError(errno.EAGAIN, "full")
            return send(data, flags)

        inner.send = refuse_until_changed  # type: ignore[method-assign]
        payload = bytearray(b"o" * 2 * Room.room)
        eventlet.spawn(payload.__setitem__, slice(None), b"n" * len(payload))
        with GreenSocket(inner) as sock:
            sock.sendall(payload)
        return inner.sent

    assert as_upstream(go, "green_sendall") == b"o" * 2 * Room.room


@pytest.mark.parametrize("fastio_settings", [{"yield_bytes": MIB}], ids=["1MiB"])
@pytest.mark.parametrize("pieces", [1, 256], ids=["one call", "many calls"])
def test_others_run_although_the_peer_has_room(patched: Any, hub: Any, room: Any, pieces: int) -> None:
    sock, inner = room
    payload = data(1, 16 * MIB)
    step = len(payload) // pieces
    with Ticker(lambda: len(inner.sent)) as others:
        for start in range(0, len(payload), step):
            sock.sendall(payload[start : start + step])
    assert inner.sent == payload
    assert counters.yields >= 15
    assert others.most <= 2 * MIB


@pytest.mark.parametrize("fastio_settings", [{"yield_bytes": MIB}], ids=["1MiB"])
def test_a_call_that_waits_anyway_does_not_yield_besides(patched: Any, hub: Any, pair: Any) -> None:
    one, two = pair
    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * KIB)
    reader = received(two)
    one.sendall(data(1, 16 * MIB))
    one.close()
    assert reader.wait() == data(1, 16 * MIB)
    assert counters.waits > 16
    assert counters.yields == 0


@pytest.mark.parametrize("fastio_settings", [{"yield_bytes": 64 * KIB}], ids=["64KiB"])
def test_no_yield_in_the_hub(patched: Any, hub: Any, room: Any) -> None:
    sock, inner = room
    done = eventlet.event.Event()

    def send() -> None:
        try:
            done.send(sock.sendall(data(1, MIB)))
        except BaseException as error:
            done.send_exception(error)

    hub.schedule_call_global(0, send)
    assert done.wait() is None
    assert inner.sent == data(1, MIB)
    assert counters.yields == 0


@pytest.mark.no_fast_path(reason="a socket in non-blocking mode is left to upstream")
@pytest.mark.parametrize("fastio_settings", [{"yield_bytes": 64 * KIB}], ids=["64KiB"])
def test_a_non_blocking_socket_does_not_yield(patched: Any, hub: Any, room: Any) -> None:
    sock, inner = room
    sock.setblocking(False)
    sock.sendall(data(1, MIB))
    assert inner.sent == data(1, MIB)
    assert counters.yields == 0


@pytest.mark.parametrize("fastio_settings", [{"yield_bytes": 64 * KIB}], ids=["64KiB"])
def test_killed_while_others_run(patched: Any, hub: Any, room: Any) -> None:
    sock, inner = room
    sender = eventlet.spawn(sock.sendall, data(1, MIB))
    eventlet.sleep(0)
    assert not sender.dead
    sender.kill()
    assert 0 < len(inner.sent) < MIB
    assert inner.sent == data(1, MIB)[: len(inner.sent)]


def test_the_flags_are_given_to_each(patched: Any, hub: Any, room: Any) -> None:
    sock, inner = room
    sock.sendall(data(1, 200_000), plain_socket.MSG_DONTROUTE)
    sock.sendall(b"abc", flags=plain_socket.MSG_DONTROUTE)
    assert inner.calls == [(size, plain_socket.MSG_DONTROUTE) for size in (65536, 65536, 65536, 3392, 3)]


class Short(Room):
    """A socket that takes 1000 bytes at a time."""

    room = 1000


#: Buffers that ``len()`` counts otherwise than in bytes, and things that are none.
STRANGE: dict[str, Callable[[], Any]] = {
    "items": lambda: array.array("I", range(2000)),
    "view of items": lambda: memoryview(array.array("I", range(2000))),
    "two dimensions": lambda: memoryview(bytes(6000)).cast("B", (60, 100)),
    "every other": lambda: memoryview(data(1, 9000))[::2],
    "backwards": lambda: memoryview(data(1, 9000))[::-1],
    "no dimension": lambda: memoryview(b"x").cast("B", ()),
    "text": lambda: "text",
    "number": lambda: 5,
    "nothing": lambda: None,
    "list": lambda: [1, 2],
}


@pytest.mark.parametrize("kind", STRANGE)
def test_strange_buffers_are_like_upstreams(hub: Any, kind: str) -> None:
    def of_a_peer_with_room() -> Any:
        inner = Short()
        with GreenSocket(inner) as sock:
            return outcome(lambda: sock.sendall(STRANGE[kind]())), inner.sent

    def of_real_sockets() -> Any:
        one, two = socket.socketpair()
        with two:
            with one:
                result = outcome(lambda: one.sendall(STRANGE[kind]()))
            return result, received(two).wait()

    as_upstream(of_a_peer_with_room, "green_sendall")
    as_upstream(of_real_sockets)


MUCH = data(1, 8 * MIB)


def _is_obsolete(one: Any, two: Any) -> None:
    def another_has_its_number() -> None:
        hubs.notify_opened(one.fileno())
        eventlet.sleep(0)

    eventlet.spawn(another_has_its_number)
    one.sendall(MUCH)


def _is_killed(one: Any, two: Any) -> None:
    with eventlet.Timeout(0.01):
        one.sendall(MUCH)


def _two_at_once(one: Any, two: Any) -> None:
    first = eventlet.spawn(one.sendall, MUCH)
    eventlet.sleep(0)
    try:
        one.sendall(b"abc")
    finally:
        first.kill()


#: Calls on two connected sockets, the last of which is an error.
STEPS: dict[str, Callable[[Any, Any], object]] = {
    "it times out": lambda one, two: (one.settimeout(0.01), one.sendall(MUCH)),
    "it is non-blocking": lambda one, two: (one.setblocking(False), one.sendall(MUCH)),
    "the peer goes away": lambda one, two: (eventlet.spawn(two.close), one.sendall(MUCH)),
    "the peer has gone": lambda one, two: (two.close(), one.sendall(b"abc")),
    "it is closed": lambda one, two: (one.close(), one.sendall(b"abc")),
    "it is shut down": lambda one, two: (one.shutdown(plain_socket.SHUT_WR), one.sendall(b"abc")),
    "another file has its number": _is_obsolete,
    "it is killed": _is_killed,
    "two send at once": _two_at_once,
}


@pytest.mark.parametrize("step", STEPS)
def test_errors_are_upstreams(hub: Any, step: str) -> None:
    def error() -> Any:
        one, two = socket.socketpair()
        try:
            STEPS[step](one, two)
        except BaseException as raised:
            # Not the message: the descriptor's number is in some.
            return type(raised), getattr(raised, "errno", None)
        finally:
            one.close()
            two.close()

    assert as_upstream(error) is not None


@pytest.mark.no_fast_path(reason="a subclass is left to upstream")
def test_a_subclass_that_defines_send(patched: Any, hub: Any) -> None:
    class Own(GreenSocket):
        def send(self, data: Any, flags: int = 0) -> int:
            calls.append((type(data), len(data)))
            return min(len(data), 1000)

    calls: list[Any] = []
    expected = [(bytes, 2500), (bytes, 1500), (bytes, 500)]
    with Own() as sock:
        sock.sendall(bytes(2500))
    assert calls == expected
    calls.clear()
    with GreenSocket() as sock:
        sock.send = lambda data, flags=0: Own.send(sock, data, flags)
        sock.sendall(bytes(2500))
        assert calls == expected
        del sock.send
