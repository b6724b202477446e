"""A child whose output or input is streamed: all of its bytes, its errors and its end, and others' turns meanwhile."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastio.core import pipes
from fastio.drivers._process import Child
from tests.conftest import MONKEY_PATCHED
from tests.descriptors import descriptors, forgotten, unread

KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture(autouse=True)
def leaves_no_descriptor() -> Iterator[None]:
    time.sleep(0)  # The hub's own are opened by the first wait.
    before = descriptors()
    yield
    assert not descriptors() - before


def python(code: str) -> list[str]:
    return [sys.executable, "-ISc", code]


@settings(max_examples=20, deadline=None)
@given(size=st.integers(0, 300_000), piece=st.integers(1, 100_000), chunk=st.integers(1, 100_000))
def test_all_of_the_output_in_chunks(size: int, piece: int, chunk: int) -> None:
    code = f"""
import os
data = bytes(range(251)) * ({size} // 251 + 1)
for start in range(0, {size}, {max(piece, size // 50 + 1)}):
    os.write(1, data[start:min({size}, start + {max(piece, size // 50 + 1)})])
"""
    with Child(python(code)) as child:
        chunks = list(child.chunks(chunk))
        assert child.finish() == (0, "")
    assert b"".join(chunks) == (bytes(range(251)) * (size // 251 + 1))[:size]
    assert all(len(each) == chunk for each in chunks[:-1])
    assert all(chunks)


@settings(max_examples=20, deadline=None)
@given(pieces=st.lists(st.integers(0, 200_000), max_size=5))
def test_all_of_the_input(pieces: list[int]) -> None:
    code = "import sys; data = sys.stdin.buffer.read(); sys.stderr.write(f'{len(data)} {sum(data)}')"
    with Child(python(code), feeds=True) as child:
        for number, size in enumerate(pieces):
            child.write(bytes([number + 1]) * size)
        sums = sum((number + 1) * size for number, size in enumerate(pieces))
        assert child.finish() == (0, f"{sum(pieces)} {sums}")


def test_errors_are_many_and_no_text() -> None:
    with Child(python("import os; os.write(2, b'\\xff' + b'x' * 2**20); os.write(1, b'out'); os._exit(7)")) as child:
        assert list(child.chunks(MIB)) == [b"out"]
        status, said = child.finish()
    assert status == 7
    assert said == "\ufffd" + "x" * (16 * KIB - 1)


def test_a_child_that_does_not_read() -> None:
    with Child(["true"], feeds=True) as child:
        with pytest.raises(BrokenPipeError):
            for _ in range(100):
                child.write(b"x" * MIB)
        assert child.finish() == (0, "")


def test_a_child_that_can_not_be_started() -> None:
    for arguments in (["/no such program"], ["true", "nul\0"]):
        for feeds in (True, False):
            with pytest.raises((FileNotFoundError, ValueError)):
                Child(arguments, feeds=feeds)


def test_the_child_ends_with_the_context() -> None:
    with Child(["sleep", "1000"]) as child:
        pid = child._popen.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_the_end_of_the_child_blocks_its_own_end_only() -> None:
    """A pipe that does not block would have ``dog`` spin."""
    with Child(python("import os; print(os.get_blocking(1))")) as child:
        assert list(child.chunks(100)) == [b"True\n"]
    with Child(python("import os, sys; sys.exit(os.get_blocking(0))"), feeds=True) as child:
        assert child.finish()[0] == 1


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """``[number]`` of turns that another greenlet had; transfers may move 64 KiB in each."""
    if not MONKEY_PATCHED:
        pytest.skip("threads need not give way")
    import eventlet

    monkeypatch.setenv("FASTIO_YIELD_BYTES", "64KiB")
    counted = [0]

    def count() -> None:
        while True:
            counted[0] += 1
            eventlet.sleep(0)

    counting = eventlet.spawn(count)
    yield counted
    counting.kill()


def test_who_reads_without_waiting_gives_way(turns: list[int]) -> None:
    with Child(["head", "-c", str(MIB), "/dev/zero"]) as child:
        pipes.grow(child._fd, MIB)
        if pipes.capacity(child._fd) < MIB:
            pytest.skip("the system grants no pipe of 1 MiB")
        while unread(child._fd) < MIB:
            time.sleep(0.001)
        turns[0] = 0
        assert next(child.chunks(MIB)) == bytes(MIB)
    assert turns[0] >= MIB // (64 * KIB) - 1


def test_who_writes_without_waiting_gives_way(turns: list[int]) -> None:
    with Child(["sleep", "1000"], feeds=True) as child:
        pipes.grow(child._fd, MIB)
        if pipes.capacity(child._fd) < MIB:
            pytest.skip("the system grants no pipe of 1 MiB")
        turns[0] = 0
        child.write(bytes(MIB))
    assert turns[0] >= MIB // (64 * KIB) - 1


@pytest.mark.skipif(not MONKEY_PATCHED, reason="there is no hub")
@pytest.mark.parametrize("feeds", [False, True])
def test_its_pipe_has_a_number_that_the_hub_knows(feeds: bool) -> None:
    """A file was closed while a greenlet waited for it, and nobody has told the hub."""
    from eventlet import hubs

    def opens() -> int:
        with Child(["true"], feeds=feeds) as child:
            return child._fd

    with forgotten(opens) as waiting, Child(["cat" if feeds else "true"], feeds=feeds) as child:
        if feeds:
            child.write(b"x" * 3 * MIB)
        else:
            assert list(child.chunks(MIB)) == []
        assert child.finish() == (0, "")
        assert waiting.wait() is hubs.IOClosed
