"""``fastio.io.unbuffered``: what a socket has, in order and complete, with the time-out that it has."""

import io
import random
import socket
import ssl
import threading
import types
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastio.io import lowwater, unbuffered
from tests.conftest import MONKEY_PATCHED
from tests.io.conftest import arrived, connection, level, readable

KIB = 1 << 10
MIB = 1 << 20

pytestmark = pytest.mark.skipif(MONKEY_PATCHED, reason="the sockets are the system's; tests/patches has the green ones")


def test_the_kernel_gathers(ends: tuple[socket.socket, socket.socket]) -> None:
    near, far = ends
    seen = []

    def gathering(fd: int, seconds: float) -> bool:
        seen.append((level(near), seconds))
        return readable(fd, 30)

    with near.makefile("rb") as below, unbuffered.reader(unbuffered.Gathered(below, gathering)) as file:
        far.sendall(b"head\n")
        assert file.readline() == b"head\n"
        sender = threading.Thread(target=far.sendall, args=(bytes(2 * MIB),))
        sender.start()
        assert file.read(2 * MIB) == bytes(2 * MIB)
        sender.join()
    assert {patience for _, patience in seen} <= {unbuffered.PATIENCE}
    assert all(lowwater.LEAST <= mark <= lowwater.MOST for mark, _ in seen)
    assert level(near) == 1


class Counting(io.BufferedReader):
    """Counts the reads of the buffer."""

    buffered = 0

    def read1(self, size: int = -1, /) -> bytes:
        self.buffered += 1
        return super().read1(size)


@pytest.mark.parametrize("head", [b"", b"head\n"])
def test_a_fast_peer_does_not_keep_the_buffer_in_use(ends: tuple[socket.socket, socket.socket], head: bytes) -> None:
    near, far = ends
    # More than the buffer takes: each view is filled at once.
    sent = random.Random(1).randbytes(5 * 16 * KIB)
    far.sendall(head + sent)
    arrived(near, len(head + sent))
    with Counting(socket.SocketIO(near, "r"), 8 * KIB) as below:
        assert below.read(len(head)) == head
        reader = unbuffered.Gathered(below, readable)
        view = memoryview(bytearray(16 * KIB))
        got = b""
        while len(got) < len(sent):
            assert reader.readinto(view[:0]) == 0
            count = reader.readinto(view)
            got += view[:count]
    assert (got, below.buffered) == (sent, 1)


def test_what_the_buffer_has_comes_before_the_rest(ends: tuple[socket.socket, socket.socket]) -> None:
    near, far = ends
    far.sendall(b"first, second, third")
    arrived(near, 20)
    with Counting(socket.SocketIO(near, "r"), 8 * KIB) as below:
        assert below.read(7) == b"first, "
        far.sendall(b", fourth")
        reader = unbuffered.Gathered(below, readable)
        pieces = [bytearray(size) for size in (8, 20, 20)]
        counts = [reader.readinto(each) for each in pieces]
    assert [bytes(each[:count]) for each, count in zip(pieces, counts, strict=True)] == [
        b"second, ", b"third", b", fourth",
    ]  # fmt: skip
    assert below.buffered == 2


class Timed(socket.SocketIO):
    """Notes the time-out that each read has."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock, "r")
        self.timeouts: list[float | None] = []

    def readinto(self, view: memoryview) -> int | None:  # type: ignore[override]
        self.timeouts.append(self._sock.gettimeout())  # type: ignore[attr-defined]
        return super().readinto(view)


@pytest.mark.parametrize("timeout", [None, 600.0, 0.02])
def test_time_outs(ends: tuple[socket.socket, socket.socket], timeout: float | None) -> None:
    near, far = ends
    near.settimeout(timeout)
    raw = Timed(near)
    patience = []

    def in_vain(fd: int, seconds: float) -> bool:
        patience.append(seconds)
        far.sendall(b"late")
        arrived(near, 4)
        assert readable(fd, 0) is False
        return False

    reader = unbuffered.Gathered(io.BufferedReader(raw), in_vain)
    far.sendall(b"first")
    arrived(near, 5)
    view = memoryview(bytearray(MIB))
    assert reader.readinto(view) == 5
    assert reader.readinto(view) == 4
    assert bytes(view[:4]) == b"late"
    if timeout is None:
        assert (patience, raw.timeouts[1]) == ([unbuffered.PATIENCE], None)
    else:
        assert patience == [min(unbuffered.PATIENCE, timeout / 2)]
        assert raw.timeouts[1] == timeout - patience[0]
    assert (near.gettimeout(), level(near)) == (timeout, 1)


def test_a_time_out_is_raised_and_remembered(ends: tuple[socket.socket, socket.socket]) -> None:
    near, _ = ends
    near.settimeout(0.01)
    with near.makefile("rb") as below:
        file = unbuffered.reader(unbuffered.Gathered(below, readable))
        with pytest.raises(TimeoutError, match="timed out"):
            file.read(MIB)
        with pytest.raises(OSError, match="cannot read from timed out object"):
            file.read(MIB)
    assert near.gettimeout() == 0.01


@pytest.mark.parametrize("sent", [0, 1, 300 * KIB])
def test_the_end_of_the_connection(ends: tuple[socket.socket, socket.socket], sent: int) -> None:
    near, far = ends
    far.sendall(bytes(sent))
    far.shutdown(socket.SHUT_WR)
    with near.makefile("rb") as below:
        file = unbuffered.reader(unbuffered.Gathered(below, lambda fd, seconds: readable(fd, 30)))
        assert file.read(MIB) == bytes(sent)
        assert file.read(MIB) == b""


def test_closing(ends: tuple[socket.socket, socket.socket]) -> None:
    near, far = ends
    below = near.makefile("rb")
    file = unbuffered.reader(unbuffered.Gathered(below, readable))
    assert file.fileno() == near.fileno()
    assert file.raw._sock is near  # type: ignore[attr-defined]
    near.close()
    file.close()
    assert below.closed
    assert file.closed
    # The last one who held the socket is gone.
    assert far.recv(1) == b""


def test_who_keeps_the_pace(ends: tuple[socket.socket, socket.socket]) -> None:
    near, far = ends
    moved: list[int | None] = []
    with near.makefile("rb") as below:
        reader = unbuffered.Gathered(below, readable, lambda: moved.append(None), moved.append)
        far.sendall(bytes(100))
        assert unbuffered.reader(reader).read(100) == bytes(100)
    assert moved[::2] == [None] * (len(moved) // 2)
    assert sum(count or 0 for count in moved) == 100


@settings(deadline=None, max_examples=60)
@given(
    size=st.integers(0, 2 * MIB),
    head=st.integers(0, 10_000),
    pieces=st.lists(st.integers(1, 300 * KIB), min_size=1, max_size=8),
    reads=st.lists(st.integers(1, 700 * KIB), min_size=1, max_size=8),
    timeout=st.sampled_from([None, 30.0]),
)
def test_any_pieces_and_reads(size: int, head: int, pieces: list[int], reads: list[int], timeout: float | None) -> None:
    data = random.Random(size).randbytes(size)
    near, far = connection()

    def send() -> None:
        start = number = 0
        while start < size:
            # Thousands of tiny pieces would take minutes on a busy machine.
            piece = max(pieces[number % len(pieces)], size // 256)
            far.sendall(data[start : start + piece])
            start += piece
            number += 1

    with near, far, near.makefile("rb") as below:
        near.settimeout(timeout)
        sender = threading.Thread(target=send)
        sender.start()
        head = min(head, size)
        found = below.read(head)
        file = unbuffered.reader(unbuffered.Gathered(below, readable))
        number = 0
        while len(found) < size:
            wanted = min(max(reads[number % len(reads)], size // 256), size - len(found))
            part = file.read(wanted)
            assert len(part) == wanted
            found += part
            number += 1
        sender.join()
    assert found == data


def test_whole_pieces(ends: tuple[socket.socket, socket.socket]) -> None:
    """A read has what has arrived, but no part of a piece, unless it is the end."""
    near, far = ends
    with near.makefile("rb") as below:
        file = unbuffered.Pieces(unbuffered.Whole(unbuffered.Gathered(below, lambda fd, seconds: False), 1000))
        file.at_once = True
        far.sendall(b"a" * 2500)
        arrived(near, 2500)
        assert file.read(10_000) == b"a" * 2000
        sender = threading.Timer(0.05, far.sendall, (b"b" * 600,))
        sender.start()
        # The rest of the piece is waited for.
        assert file.read(10_000) == b"a" * 500 + b"b" * 500
        # A message that ends there, or a chunk that is shorter than a piece.
        far.sendall(b"c" * 150)
        assert file.read(200) == b"b" * 100 + b"c" * 100
        file.at_once = False
        far.sendall(b"d" * 950)
        far.shutdown(socket.SHUT_WR)
        assert file.read(900) == b"c" * 50 + b"d" * 850
        assert file.read() == b"d" * 100
        assert file.read(10) == b""


def test_less_than_what_is_kept(ends: tuple[socket.socket, socket.socket]) -> None:
    near, far = ends
    with near.makefile("rb") as below:
        whole = unbuffered.Whole(unbuffered.Gathered(below, lambda fd, seconds: False), 1000)
        far.sendall(bytes(range(200)) * 9)
        arrived(near, 1800)
        view = memoryview(bytearray(5000))
        assert whole.readinto(view) == 1000
        found = b""
        while len(found) < 800:
            count = whole.readinto(view[: min(300, 800 - len(found))])
            found += view[:count]
        assert found == bytes(range(200)) * 4
        whole.close()
        assert below.closed


def test_closing_what_is_in_pieces(ends: tuple[socket.socket, socket.socket]) -> None:
    near, far = ends
    below = near.makefile("rb")
    file = unbuffered.Pieces(unbuffered.Whole(unbuffered.Gathered(below, readable), 1000))
    assert file.fileno() == near.fileno()
    assert file.raw._sock is near  # type: ignore[attr-defined]
    near.close()
    file.close()
    assert below.closed and file.closed
    assert far.recv(1) == b""


class Records:
    """OpenSSL's side of a socket: each read returns one record, or raises it."""

    def __init__(self, near: socket.socket, *records: bytes | Exception) -> None:
        self._near = near
        self._records = list(records)

    def pending(self) -> int:
        return 0

    def read(self, size: int, view: memoryview) -> int:
        if not self._records:
            return 0
        record = self._records.pop(0)
        self._near.recv(unbuffered.RECORD)
        if isinstance(record, Exception):
            raise record
        view[: len(record)] = record
        return len(record)


def decrypted(near: socket.socket, records: Records, below: Any) -> unbuffered.Arrived:
    found = unbuffered.Arrived(below, None, None)
    found._socket = types.SimpleNamespace(_sslobj=records, fileno=near.fileno, suppress_ragged_eofs=True)
    found._drained = True
    return found


def arrive(far: socket.socket, near: socket.socket, size: int) -> None:
    far.sendall(bytes(size))
    arrived(near, size)


def test_records_that_have_arrived(ends: tuple[socket.socket, socket.socket]) -> None:
    near, far = ends
    with near.makefile("rb") as below:
        file = decrypted(near, Records(near, b"a", b"b", b"c", b"d"), below)
        view = memoryview(bytearray(100))
        arrive(far, near, 3 * unbuffered.RECORD + 5)
        # The last has not come in full: to wait for it would keep back the others.
        assert file.readinto(view) == 3
        assert bytes(view[:3]) == b"abc"
        assert file.readinto(view) == 1
        assert file.readinto(view) == 0


@pytest.mark.parametrize("error", [ssl.SSLError("bad record"), ConnectionResetError(), ssl.SSLEOFError()])
def test_an_error_comes_after_what_came_before_it(ends: tuple[socket.socket, socket.socket], error: Exception) -> None:
    near, far = ends
    with near.makefile("rb") as below:
        file = decrypted(near, Records(near, b"a", b"b", error), below)
        view = memoryview(bytearray(100))
        arrive(far, near, 4 * unbuffered.RECORD)
        assert file.readinto(view) == 2
        assert bytes(view[:2]) == b"ab"
        read: Callable[[], Any] = lambda: file.readinto(view)  # noqa: E731
        if isinstance(error, ssl.SSLEOFError):
            assert read() == 0
        else:
            with pytest.raises(type(error)):
                read()
