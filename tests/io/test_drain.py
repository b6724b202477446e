"""Reading one output into one result."""

import errno
import os
from collections.abc import Callable
from posix import write  # the functions of os may be green ones, which wait
from typing import Any

import pytest

from fastio.io import drain as drain_module
from fastio.io import pipes
from fastio.io.drain import Drain
from tests.child import MIB, data

Pipe = Callable[..., tuple[int, int]]


@pytest.mark.parametrize("limit", [1, 100, 4096, 10**9])
def test_no_more_than_the_limit(pipe: Pipe, limit: int) -> None:
    reader, writer = pipe(blocking=False)
    write(writer, data(1, 50_000))
    drain = Drain(reader, MIB, MIB)
    assert drain.move(limit) == min(limit, 50_000)
    assert drain.may_block == (limit > 50_000)
    assert drain.take() == data(1, 50_000)[:limit]


def test_a_short_answer_leaves_the_pipe_unchanged(pipe: Pipe) -> None:
    reader, writer = pipe()
    drain = Drain(reader, MIB, MIB)
    for _ in range(20):
        write(writer, data(1, pipes.DEFAULT_CAPACITY // 2 - 1))
        drain.move(MIB)
    assert pipes.capacity(reader) == pipes.DEFAULT_CAPACITY


@pytest.mark.parametrize("error", [errno.ENOSYS, errno.EPERM, errno.EACCES, errno.ENOMEM], ids=errno.errorcode.get)
@pytest.mark.parametrize("blocking", [True, False])
def test_without_readv(pipe: Pipe, monkeypatch: pytest.MonkeyPatch, error: int, blocking: bool) -> None:
    def readv(fd: int, buffers: Any) -> int:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(drain_module.os, "readv", readv)
    reader, writer = pipe()
    os.set_blocking(reader, blocking)
    drain = Drain(reader, MIB, MIB)
    if not blocking:
        with pytest.raises(BlockingIOError):
            drain.move(MIB)
    assert write(writer, data(1, 50_000)) == 50_000
    assert (drain.move(10_000), drain.may_block) == (10_000, blocking)
    assert (drain.move(MIB), drain.may_block) == (40_000, True)
    os.close(writer)
    assert drain.move(MIB) == 0 and drain.done
    assert drain.take() == data(1, 50_000)


def test_other_errors_are_raised(pipe: Pipe) -> None:
    _, writer = pipe()
    for attempt in (lambda: Drain(writer, MIB, MIB).move(MIB), lambda: Drain(10**6, MIB, MIB)):
        with pytest.raises(OSError) as caught:
            attempt()
        assert caught.value.errno == errno.EBADF
