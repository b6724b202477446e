"""The exchange: several drains and a feed, until all have ended. Children and callers are tested in tests/patches."""

import os
from collections.abc import Callable

import pytest

from fastio.concurrency.pace import Pace
from fastio.concurrency.waiting import NativeSelector
from fastio.io.drain import Drain
from fastio.io.exchange import exchange
from tests.child import MIB
from tests.conftest import MONKEY_PATCHED
from tests.descriptors import unread


class Peer:
    """Has no time any more when it is asked a second time, which is after the wait."""

    asked = 0

    def remaining(self) -> float | None:
        self.asked += 1
        if self.asked > 1:
            raise TimeoutError
        return 0.01

    def is_open(self, fd: int) -> bool:
        return True

    def fed(self, offset: int) -> None:
        pass

    def moved(self) -> None:
        pass

    def ended(self, fd: int) -> None:
        pass


@pytest.mark.skipif(MONKEY_PATCHED, reason="poll and native threads; green ones are tested with Popen")
def test_late_output_is_left_in_the_pipe(pipe: Callable[..., tuple[int, int]]) -> None:
    reader, writer = pipe()
    os.write(writer, b"too late")
    with pytest.raises(TimeoutError):
        exchange([Drain(reader, MIB, MIB)], None, NativeSelector(), Peer(), Pace(fixed=MIB))
    assert unread(reader) == len(b"too late")
