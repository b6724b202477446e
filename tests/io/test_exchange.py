"""The exchange: several drains and a feed, until all have ended. What children and callers see is in tests/patches."""

import os
from collections.abc import Callable

import pytest

from fastio.concurrency.pace import Pace
from fastio.concurrency.waiting import NativeSelector
from fastio.io.drain import Drain
from fastio.io.exchange import exchange
from fastio.io.feed import Feed
from tests.child import MIB
from tests.conftest import MONKEY_PATCHED

Pipe = Callable[..., tuple[int, int]]

pytestmark = pytest.mark.skipif(MONKEY_PATCHED, reason="poll and native threads; green ones are tested with Popen")


class Peer:
    """Notes what has ended; the input cannot be closed."""

    def __init__(self, input: int) -> None:
        self._input = input
        self.done: list[int] = []

    def remaining(self) -> float | None:
        return 0.01

    def fed(self, offset: int) -> None:
        pass

    def moved(self) -> None:
        pass

    def ended(self, fd: int) -> None:
        if fd == self._input:
            raise BrokenPipeError
        self.done.append(fd)


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

    peer = Peer(in_writer)
    feed = Feed(in_writer, memoryview(b"x"), 0, 4096, 0)
    with pytest.raises(BrokenPipeError):
        exchange([Drain(out_reader, 4096, 0)], feed, Told(), peer, Pace(fixed=MIB))
    assert os.read(out_reader, 100) == b"output"
    assert peer.done == []
