"""``fastio.io.lowwater``: the kernel gathers a chunk before it says that there is something to read."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastio.io import lowwater
from tests.io.conftest import arrived, level, readable

KIB = 1 << 10
MIB = 1 << 20


@given(size=st.integers(0, 8 * MIB), left=st.integers(0, 64 * MIB))
def test_a_mark_is_never_beyond_the_end(size: int, left: int) -> None:
    found = lowwater.mark(size, left)
    assert found == 0 or lowwater.LEAST <= found <= min(size, lowwater.MOST)
    # The chunk, what the readers' buffers take beside it, and then the mark itself have to be there.
    assert found == 0 or size + found + lowwater.RESERVE <= left


def test_the_reader_is_woken_once_the_mark_is_reached(ends: tuple[socket.socket, socket.socket]) -> None:
    near, far = ends

    def move(size: int) -> bytes:
        far.sendall(bytes(64 * KIB))
        arrived(near, 64 * KIB)
        assert not readable(near)
        far.sendall(bytes(size - 64 * KIB))
        assert readable(near, 30)
        return near.recv(size)

    assert lowwater.read(near, move, 256 * KIB, MIB)
    assert level(near) == 1


def test_the_end_of_the_connection_wakes_at_once(ends: tuple[socket.socket, socket.socket]) -> None:
    near, far = ends

    def move(size: int) -> bytes:
        far.sendall(b"the end")
        far.shutdown(socket.SHUT_WR)
        assert readable(near, 30)
        return near.recv(size)

    assert lowwater.read(near, move, 256 * KIB, MIB) == b"the end"


def test_a_full_buffer_wakes_whatever_the_mark(ends: tuple[socket.socket, socket.socket]) -> None:
    """The kernel's own promise, on which it rests that no transfer stalls."""
    near, far = ends
    near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * KIB)
    far.setblocking(False)

    def move(size: int) -> bytes:
        with pytest.raises(BlockingIOError):
            while True:
                far.send(bytes(64 * KIB))
        assert readable(near, 30)
        return near.recv(size)

    assert lowwater.read(near, move, MIB, 64 * MIB)


def test_the_mark_of_before_comes_back(ends: tuple[socket.socket, socket.socket]) -> None:
    """Also after an error."""
    near, _ = ends
    near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 7)

    def move(size: int) -> bytes:
        assert level(near) == 256 * KIB
        raise TimeoutError

    with pytest.raises(TimeoutError):
        lowwater.read(near, move, 256 * KIB, MIB)
    assert level(near) == 7


def test_a_socket_that_is_closed_meanwhile_or_before(ends: tuple[socket.socket, socket.socket]) -> None:
    near, far = ends

    def move(size: int) -> bytes:
        near.close()
        return b"done"

    assert lowwater.read(near, move, 256 * KIB, MIB) == b"done"
    assert lowwater.read(near, move, 256 * KIB, MIB) == b"done"
