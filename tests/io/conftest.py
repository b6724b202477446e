"""Shared by the tests of I/O: real pipes, and no child."""

import contextlib
import errno
import os
import select
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fastio.io import feed
from tests.descriptors import unread


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


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a TCP connection."""
    near, far = connection()
    with near, far:
        yield near, far


def readable(sock: int | socket.socket, seconds: float = 0) -> bool:
    """Whether there is something to read within that time, as poll() has it."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def level(sock: socket.socket) -> int:
    """The low-water mark."""
    return sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)


def arrived(sock: socket.socket, count: int) -> None:
    """Wait until ``count`` bytes are in the socket, whatever its mark and its time-out."""
    while unread(sock.fileno()) < count:
        select.select([], [], [], 0.001)


def refuse_nowait(monkeypatch: pytest.MonkeyPatch, error: Exception | None = None) -> None:
    """A kernel, a container or a C library in which every write may wait."""

    def pwritev(fd: int, buffers: Any, offset: int, flags: int = 0) -> int:
        raise error or OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(feed.os, "pwritev", pwritev)


def refuse_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container in which no file is opened a second time through /proc."""
    real = os.open

    def refuse(path: Any, *rest: Any, **named: Any) -> int:
        if str(path).startswith("/proc/self/fd/"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, *rest, **named)

    monkeypatch.setattr(feed.os, "open", refuse)
