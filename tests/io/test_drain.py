"""Reading one output into one result."""

import errno
from collections.abc import Callable
from posix import write  # the functions of os may be green ones, which wait

import pytest

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


def test_other_errors_are_raised(pipe: Pipe) -> None:
    _, writer = pipe()
    for attempt in (lambda: Drain(writer, MIB, MIB).move(MIB), lambda: Drain(10**6, MIB, MIB)):
        with pytest.raises(OSError) as caught:
            attempt()
        assert caught.value.errno == errno.EBADF
