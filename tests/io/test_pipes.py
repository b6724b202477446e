"""The capacity of pipes."""

import errno
import fcntl
import os
import pathlib
import socket
from collections.abc import Callable
from posix import write  # the functions of os may be green ones, which wait
from typing import Any

import pytest

from fastio.concurrency.budget import Budget
from fastio.io import pipes
from tests.child import MIB

Pipe = Callable[..., tuple[int, int]]


@pytest.mark.parametrize("end", [0, 1])
def test_it_grows_and_holds_as_much_and_never_shrinks(pipe: Pipe, end: int) -> None:
    ends = pipe(blocking=False)
    assert pipes.capacity(ends[0]) == pipes.capacity(ends[1]) == pipes.DEFAULT_CAPACITY
    # The kernel rounds up.
    assert pipes.grow(ends[end], 100_003) == 131072
    assert pipes.grow(ends[end], MIB) == MIB == pipes.capacity(ends[0])
    assert write(ends[1], bytes(2 * MIB)) == MIB
    for size in (0, 1, 4096, 65536, MIB - 1, MIB):
        assert pipes.grow(ends[0], size) == MIB


@pytest.mark.parametrize(
    ("allowed", "granted", "error"),
    [
        (131072, 131072, errno.EPERM),
        (500_000, 262144, errno.EPERM),
        *((65536, pipes.DEFAULT_CAPACITY, error) for error in (errno.EPERM, errno.ENOMEM, errno.EBUSY, errno.EINVAL)),
    ],
)
def test_the_largest_that_is_allowed_and_no_refusal_is_an_error(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch, allowed: int, granted: int, error: int
) -> None:
    def limited(fd: int, cmd: int, arg: Any = 0) -> Any:
        if cmd == fcntl.F_SETPIPE_SZ and arg > allowed:
            raise OSError(error, os.strerror(error))
        return fcntl.fcntl(fd, cmd, arg)

    monkeypatch.setattr(pipes, "fcntl", type("Limited", (), {"fcntl": staticmethod(limited)}))
    assert pipes.grow(pipe()[0], MIB) == granted


def test_files_that_are_no_pipe(tmp_path: pathlib.Path) -> None:
    with open(tmp_path / "file", "wb") as file:
        assert pipes.capacity(file.fileno()) == pipes.grow(file.fileno(), MIB) == 0
    one, other = socket.socketpair()
    assert pipes.capacity(one.fileno()) == pipes.grow(one.fileno(), MIB) == 0
    one.close()
    other.close()
    assert pipes.capacity(10**6) == pipes.grow(10**6, MIB) == 0


@pytest.fixture
def transfers(standing_budget: Budget, monkeypatch: pytest.MonkeyPatch) -> Budget:
    """The budget, and no pipe that is large already."""
    monkeypatch.setattr(pipes, "_grown", set())
    return standing_budget


@pytest.mark.parametrize(("size", "granted"), [(MIB, MIB), (0, pipes.DEFAULT_CAPACITY)])
def test_one_alone_gets_all_that_it_asks_for(pipe: Pipe, transfers: Budget, size: int, granted: int) -> None:
    reader, _ = pipe()
    growth = pipes.Growth(reader, size)
    for _ in range(3):
        growth.ask()
        assert pipes.capacity(reader) == granted


def test_with_fewer_others_it_gets_more(pipe: Pipe, transfers: Budget) -> None:
    others = [object() for _ in range(40)]
    for other in others:
        transfers.enter(other)
    reader, _ = pipe()
    growth = pipes.Growth(reader, MIB)
    growth.ask()
    assert pipes.capacity(reader) == pipes.DEFAULT_CAPACITY
    for other in others[:-4]:
        transfers.leave(other)
    growth.ask()
    assert pipes.capacity(reader) == MIB // 4
    for other in others:
        transfers.leave(other)
    growth.ask()
    assert pipes.capacity(reader) == MIB


def test_all_together_take_no_more_than_a_few_would(pipe: Pipe, transfers: Budget) -> None:
    """Also those that were busy one after the other, when no other was, and are quiet now."""
    readers = [pipe()[0] for _ in range(20)]
    for reader in readers:
        pipes.Growth(reader, MIB).ask()
    grown = [pipes.capacity(reader) - pipes.DEFAULT_CAPACITY for reader in readers]
    assert grown[0] == MIB - pipes.DEFAULT_CAPACITY
    assert 3 * MIB < sum(grown) <= pipes.MOST * MIB
    # The memory of a closed pipe can be had by others, whoever closed it.
    for reader in readers[:10]:
        os.close(reader)
    fresh, _ = pipe()
    pipes.Growth(fresh, MIB).ask()
    assert pipes.capacity(fresh) == MIB


@pytest.mark.parametrize("size", [4096, 8192, 128 * 1024, 2 * MIB])
def test_a_size_that_the_program_chose_stays(pipe: Pipe, transfers: Budget, size: int) -> None:
    reader, _ = pipe()
    try:
        fcntl.fcntl(reader, pipes._SET, size)
    except PermissionError:
        pytest.skip("this user may have no such pipe")
    pipes.Growth(reader, MIB).ask()
    assert pipes.capacity(reader) == size


def test_a_size_that_the_program_chose_later_stays(pipe: Pipe, transfers: Budget) -> None:
    transfers.enter(object_1 := object())
    transfers.enter(object_2 := object())
    reader, _ = pipe()
    growth = pipes.Growth(reader, MIB)
    growth.ask()
    assert pipes.capacity(reader) == MIB // 2
    fcntl.fcntl(reader, pipes._SET, 4096)
    transfers.leave(object_1)
    transfers.leave(object_2)
    growth.ask()
    assert pipes.capacity(reader) == 4096


def test_systems_that_do_not_tell_or_set(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes, "_SET", None)
    assert pipes.grow(pipe()[0], MIB) == pipes.DEFAULT_CAPACITY
    monkeypatch.setattr(pipes, "_GET", None)
    assert pipes.capacity(pipe()[0]) == pipes.grow(pipe()[0], MIB) == 0
