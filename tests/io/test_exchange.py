"""The exchange: several drains and a feed, until all have ended."""

import errno
import os
import threading
from collections.abc import Callable

import pytest

from fastio import counters
from fastio.concurrency.pace import Pace
from fastio.concurrency.waiting import NativeSelector
from fastio.io.drain import LEAST, Drain
from fastio.io.exchange import exchange
from fastio.io.feed import Feed
from tests.child import BIG, MIB, data
from tests.conftest import MONKEY_PATCHED

Pipe = Callable[..., tuple[int, int]]

pytestmark = pytest.mark.skipif(MONKEY_PATCHED, reason="poll and native threads; green ones are tested with Popen")


class Peer:
    """Notes what it is told, and says that the time is over when it has been asked ``patience`` times."""

    def __init__(self, patience: int = 10**9) -> None:
        self.patience = patience
        self.offsets: list[int] = []
        self.done: list[int] = []

    def remaining(self) -> float | None:
        self.patience -= 1
        if self.patience < 0:
            raise TimeoutError
        return 0.01

    def fed(self, offset: int) -> None:
        self.offsets.append(offset)

    def moved(self) -> None:
        pass

    def ended(self, fd: int) -> None:
        self.done.append(fd)
        os.close(fd)


class Child:
    """Threads in place of a child: one echoes what it reads, others write."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []

    def run(self, function: Callable[[], None]) -> None:
        self._threads.append(threading.Thread(target=function))
        self._threads[-1].start()

    def writes(self, fd: int, payload: bytes, piece: int) -> None:
        def write() -> None:
            view = memoryview(payload)
            while view:
                view = view[os.write(fd, view[:piece]) :]
            os.close(fd)

        self.run(write)

    def echoes(self, source: int, target: int) -> None:
        def echo() -> None:
            while chunk := os.read(source, 10_000):
                view = memoryview(chunk)
                while view:
                    view = view[os.write(target, view) :]
            os.close(target)

        self.run(echo)

    def join(self) -> None:
        for thread in self._threads:
            thread.join()


@pytest.mark.parametrize("share", [4096, 100_003, MIB])
@pytest.mark.parametrize("chunk_size", [4096, 70_001, MIB])
@pytest.mark.parametrize("blocking", [True, False])
def test_three_streams_at_once(pipe: Pipe, blocking: bool, chunk_size: int, share: int) -> None:
    child = Child()
    (out_reader, out_writer), (err_reader, err_writer), (in_reader, in_writer) = pipe(), pipe(), pipe()
    for fd in (out_reader, err_reader, in_writer):
        os.set_blocking(fd, blocking)
    child.echoes(in_reader, out_writer)
    child.writes(err_writer, data(2, 500_000), 777)
    drains = [Drain(fd, chunk_size, MIB) for fd in (out_reader, err_reader)]
    feed = Feed(in_writer, memoryview(data(1, BIG)), 0, chunk_size, MIB)
    selector, peer = NativeSelector(), Peer()
    exchange(drains, feed, selector, peer, Pace(fixed=share))
    child.join()
    assert drains[0].take() == data(1, BIG)
    assert drains[1].take() == data(2, 500_000)
    assert sorted(peer.done) == sorted([out_reader, err_reader, in_writer])
    assert peer.offsets == sorted(peer.offsets) and peer.offsets[-1] == BIG
    assert selector.wait(0) == []
    assert counters.waits > 0


@pytest.mark.parametrize("direction", ["out", "in"])
def test_no_turn_moves_more_than_its_share(pipe: Pipe, direction: str) -> None:
    reader, writer = pipe()
    child = Child()
    received: list[bytes] = []
    moved: list[int] = []

    class Counting(NativeSelector):
        def wait(self, timeout: float | None) -> list[int]:
            moved.append(counters.bytes_in + counters.bytes_out)
            return super().wait(timeout)

    # The chunk is larger than the share, and the pipe has room for many of them.
    if direction == "out":
        os.set_blocking(reader, False)
        child.writes(writer, data(1, BIG), MIB)
        drain = Drain(reader, MIB, MIB)
        exchange([drain], None, Counting(), Peer(), Pace(fixed=70_001))
        received.append(drain.take())
    else:
        os.set_blocking(writer, False)
        child.run(lambda: received.append(b"".join(iter(lambda: os.read(reader, 4096), b""))))
        exchange([], Feed(writer, memoryview(data(1, BIG)), 0, MIB, MIB), Counting(), Peer(), Pace(fixed=70_001))
    child.join()
    assert received == [data(1, BIG)]
    moved.append(counters.bytes_in + counters.bytes_out)
    assert max(after - before for before, after in zip(moved, moved[1:], strict=False)) <= 70_001 + LEAST
    assert counters.yields > 0


def test_only_a_pipe_that_nobody_reads_ends_the_input() -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    peer = Peer()
    with pytest.raises(OSError) as caught:
        exchange([], Feed(full, memoryview(b"x" * 100), 0, MIB, MIB), NativeSelector(), peer, Pace(fixed=MIB))
    assert caught.value.errno == errno.ENOSPC
    assert peer.done == []
    os.close(full)


def test_nobody_reads_the_input(pipe: Pipe) -> None:
    reader, writer = pipe()
    os.close(reader)
    peer = Peer()
    exchange([], Feed(writer, memoryview(data(1, BIG)), 0, MIB, MIB), NativeSelector(), peer, Pace(fixed=MIB))
    assert peer.done == [writer]
    assert peer.offsets[-1] == 0


@pytest.mark.parametrize("tells_of_the_input", [True, False])
def test_the_input_comes_first(pipe: Pipe, tells_of_the_input: bool) -> None:
    # Closing it may fail, and what is in the outputs must be there then.
    (out_reader, out_writer), (in_reader, in_writer) = pipe(), pipe()
    os.set_blocking(in_writer, False)
    os.write(out_writer, b"output")
    os.close(out_writer)
    os.close(in_reader)

    class Told(NativeSelector):
        """Several are ready, and it may tell of any of them first, as hubs do."""

        def wait(self, timeout: float | None) -> list[int]:
            return [fd for fd in super().wait(timeout) if tells_of_the_input or fd == out_reader]

    class Fails(Peer):
        def ended(self, fd: int) -> None:
            if fd == in_writer:
                raise BrokenPipeError
            super().ended(fd)

    peer = Fails()
    feed = Feed(in_writer, memoryview(b"x"), 0, 4096, 0)
    with pytest.raises(BrokenPipeError):
        exchange([Drain(out_reader, 4096, 0)], feed, Told(), peer, Pace(fixed=MIB))
    assert os.read(out_reader, 100) == b"output"
    assert peer.done == []


@pytest.mark.parametrize("patience", [0, 1, 3])
def test_the_time_is_over(pipe: Pipe, patience: int) -> None:
    """It is looked at before anything is moved; what came in time is kept."""
    reader, writer = pipe()
    os.write(writer, data(1, 1000))
    drain = Drain(reader, MIB, MIB)
    with pytest.raises(TimeoutError):
        exchange([drain], None, NativeSelector(), Peer(patience), Pace(fixed=MIB))
    assert drain.take() == (data(1, 1000) if patience == 3 else b"")
    assert patience == 3 or os.read(reader, MIB) == data(1, 1000)
