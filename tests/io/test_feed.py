"""Writing one input, without waiting in the kernel."""

import errno
import os
from collections.abc import Callable
from posix import read  # the functions of os may be green ones, which wait

import pytest

from fastio.io import pipes
from fastio.io.feed import Feed
from tests.child import BIG, MIB, data
from tests.io.conftest import refuse_nowait, refuse_proc

Pipe = Callable[..., tuple[int, int]]


@pytest.fixture(params=["nonblocking", "nowait", "own description", "PIPE_BUF"])
def method(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The four methods by which a feed writes, each made the only one left."""
    if request.param in ("own description", "PIPE_BUF"):
        refuse_nowait(monkeypatch)
    if request.param == "PIPE_BUF":
        refuse_proc(monkeypatch)
    return str(request.param)


def make(pipe: Pipe, method: str, payload: bytes, offset: int = 0, chunk_size: int = MIB) -> tuple[int, int, Feed]:
    reader, writer = pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, method != "nonblocking")
    return reader, writer, Feed(writer, memoryview(payload), offset, chunk_size, MIB)


def read_all(fd: int) -> bytes:
    chunks: list[bytes] = []
    while True:
        try:
            chunk = read(fd, MIB)
        except BlockingIOError:
            return b"".join(chunks)
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)


@pytest.mark.parametrize("limit", [1, 100, 4096, 5000])
def test_no_more_than_the_limit(pipe: Pipe, method: str, limit: int) -> None:
    reader, _, feed = make(pipe, method, data(1, 20_000))
    assert feed.move(limit) == min(limit, 4096 if method == "PIPE_BUF" else limit)
    assert read_all(reader) == data(1, 20_000)[: feed.offset]


def test_a_full_pipe_does_not_block(pipe: Pipe, method: str) -> None:
    """All that it holds is used. The last resort is the only one that may block, and is known for it."""
    reader, _, feed = make(pipe, method, data(1, BIG))
    feed.move(MIB)
    assert feed.may_block == (method == "PIPE_BUF")
    if not feed.may_block:
        with pytest.raises(BlockingIOError):
            while True:
                feed.move(MIB)
        assert feed.offset == pipes.capacity(reader) == MIB


def test_its_own_descriptor_is_not_inherited(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_nowait(monkeypatch)
    _, _, feed = make(pipe, "own description", data(1, 1000))
    feed.move(MIB)
    assert feed._out != feed.fd and not os.get_inheritable(feed._out)
    feed.close()


@pytest.mark.parametrize(
    "error",
    [
        *(
            OSError(number, os.strerror(number))
            for number in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.ESPIPE, errno.EPERM, errno.EACCES,
                           errno.ENOMEM, errno.EMFILE)
        ),
        # A C library without the call.
        NotImplementedError("pwritev2: flags unavailable on this platform"),
    ],
    ids=repr,
)  # fmt: skip
def test_every_way_to_say_that_the_flag_is_unknown(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    refuse_nowait(monkeypatch, error)
    reader, _, feed = make(pipe, "own description", data(1, 1000))
    assert feed.move(MIB) == 1000
    assert read_all(reader) == data(1, 1000)
    feed.close()


def test_other_errors_are_raised(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_nowait(monkeypatch, OSError(errno.EIO, "Input/output error"))
    _, _, feed = make(pipe, "nowait", data(1, 1000))
    with pytest.raises(OSError) as caught:
        feed.move(MIB)
    assert caught.value.errno == errno.EIO


def test_little_input_leaves_the_pipe_unchanged(pipe: Pipe, method: str) -> None:
    reader, _, _ = make(pipe, method, data(1, pipes.DEFAULT_CAPACITY))
    assert pipes.capacity(reader) == pipes.DEFAULT_CAPACITY
    # The rest counts, not the whole.
    reader, _, _ = make(pipe, method, data(1, BIG), offset=BIG - 1000)
    assert pipes.capacity(reader) == pipes.DEFAULT_CAPACITY
    reader, _, _ = make(pipe, method, data(1, pipes.DEFAULT_CAPACITY + 1))
    assert pipes.capacity(reader) == MIB
