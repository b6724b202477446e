"""The capacity of pipes."""

from __future__ import annotations

import errno
import fcntl
import os
import pathlib
import socket
from collections.abc import Callable
from posix import write  # the functions of os may be green ones, which wait
from typing import Any

import pytest

from fastio.core import pipes

Pipe = Callable[..., tuple[int, int]]

MIB = 1 << 20


def test_a_new_pipe_has_the_default_capacity(pipe: Pipe) -> None:
    reader, writer = pipe()
    assert pipes.capacity(reader) == pipes.capacity(writer) == pipes.DEFAULT_CAPACITY


@pytest.mark.parametrize("end", [0, 1])
def test_it_grows_and_holds_as_much(pipe: Pipe, end: int) -> None:
    ends = pipe(blocking=False)
    assert pipes.grow(ends[end], MIB) == MIB == pipes.capacity(ends[0])
    assert write(ends[1], bytes(2 * MIB)) == MIB


def test_it_never_shrinks(pipe: Pipe) -> None:
    reader, _ = pipe()
    assert pipes.grow(reader, MIB) == MIB
    for size in (0, 1, 4096, 65536, MIB - 1, MIB):
        assert pipes.grow(reader, size) == MIB


def test_odd_sizes_are_rounded_up_by_the_kernel(pipe: Pipe) -> None:
    reader, _ = pipe()
    assert pipes.grow(reader, 100_003) == 131072


@pytest.mark.parametrize("allowed", [65536, 131072, 500_000])
def test_the_largest_that_is_allowed(pipe: Pipe, monkeypatch: pytest.MonkeyPatch, allowed: int) -> None:
    def limited(fd: int, cmd: int, arg: Any = 0) -> Any:
        if cmd == fcntl.F_SETPIPE_SZ and arg > allowed:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        return fcntl.fcntl(fd, cmd, arg)

    monkeypatch.setattr(pipes, "fcntl", type("Limited", (), {"fcntl": staticmethod(limited)}))
    reader, _ = pipe()
    assert pipes.grow(reader, MIB) == {65536: 65536, 131072: 131072, 500_000: 262144}[allowed]


@pytest.mark.parametrize("error", [errno.EPERM, errno.ENOMEM, errno.EBUSY, errno.EINVAL])
def test_no_refusal_is_an_error(pipe: Pipe, monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    def refusing(fd: int, cmd: int, arg: Any = 0) -> Any:
        if cmd == fcntl.F_SETPIPE_SZ:
            raise OSError(error, os.strerror(error))
        return fcntl.fcntl(fd, cmd, arg)

    monkeypatch.setattr(pipes, "fcntl", type("Refusing", (), {"fcntl": staticmethod(refusing)}))
    assert pipes.grow(pipe()[0], MIB) == pipes.DEFAULT_CAPACITY


def test_what_is_no_pipe(tmp_path: pathlib.Path) -> None:
    with open(tmp_path / "file", "wb") as file:
        assert pipes.capacity(file.fileno()) == pipes.grow(file.fileno(), MIB) == 0
    one, other = socket.socketpair()
    assert pipes.capacity(one.fileno()) == pipes.grow(one.fileno(), MIB) == 0
    one.close()
    other.close()
    assert pipes.capacity(10**6) == pipes.grow(10**6, MIB) == 0


def test_systems_that_do_not_tell(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes, "_GET", None)
    assert pipes.capacity(pipe()[0]) == pipes.grow(pipe()[0], MIB) == 0


def test_systems_that_do_not_set(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes, "_SET", None)
    assert pipes.grow(pipe()[0], MIB) == pipes.DEFAULT_CAPACITY
