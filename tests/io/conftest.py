"""What the tests of I/O share: real pipes, and no child."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture
def pipe() -> Iterator[Callable[..., tuple[int, int]]]:
    """``pipe(blocking=True)``: the reading and the writing descriptor of a new pipe."""
    opened: list[int] = []

    def make(blocking: bool = True) -> tuple[int, int]:
        ends = os.pipe()
        for fd in ends:
            os.set_blocking(fd, blocking)
        opened.extend(ends)
        return ends

    yield make
    for fd in opened:
        with contextlib.suppress(OSError):
            os.close(fd)


def connection() -> tuple[socket.socket, socket.socket]:
    """Both ends of a new TCP connection on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    return near, far
