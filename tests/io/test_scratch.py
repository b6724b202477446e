"""The scratch buffers."""

import ctypes
import errno
import mmap
import os
from collections.abc import Iterator
from typing import Any

import pytest

from fastio.config import MIB
from fastio.io import image_files, scratch
from fastio.io.drain import Drain
from tests.forked import in_a_fork


@pytest.fixture(autouse=True)
def none_kept() -> Iterator[None]:
    """The tests start with no buffer kept, and leave none."""
    scratch._spare.clear()
    yield
    scratch._spare.clear()


def test_a_buffer_is_used_again() -> None:
    first = scratch.borrow(1000)
    for size in (1000, 10):
        scratch.give_back(first)
        assert scratch.borrow(size) is first and len(first) == 1000
    # One that is too small is replaced.
    scratch.give_back(first)
    assert len(scratch.borrow(1001)) == 1001
    assert not scratch._spare


def test_two_borrowers_never_have_the_same() -> None:
    for _ in range(2):
        buffers = [scratch.borrow(100) for _ in range(10)]
        assert len({id(buffer.obj) for buffer in buffers}) == 10
        for buffer in buffers:
            scratch.give_back(buffer)
        assert len(scratch._spare) == scratch.KEPT


def is_copied_to_fast(address: int) -> bool:
    """Whether the kernel copies whole pages to this address without the delay of some processors."""
    return address % mmap.PAGESIZE not in range(8, 32)


def address_of(buffer: Any) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


#: More than malloc() ever takes from the heap.
_LARGE = 40 * MIB


def test_the_kernel_copies_fast_to_each_buffer() -> None:
    assert not is_copied_to_fast(address_of(bytearray(_LARGE)))
    for size in (1, 100, 65536, MIB, _LARGE):
        buffers = [scratch.borrow(size) for _ in range(3)]
        for buffer in buffers:
            assert is_copied_to_fast(address_of(buffer))
            scratch.give_back(buffer)


def test_the_kernel_copies_fast_to_what_reads_ahead_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    monkeypatch.setattr("fastio.concurrency.offload.run", lambda _, fd, buffer, *more: read.append(address_of(buffer)))
    monkeypatch.setattr(image_files.InMemory, "has", lambda *args: False)
    image_files.fetch(0, image_files.InMemory(0), 0, _LARGE)
    assert [*map(is_copied_to_fast, read)] == [True]


def test_the_kernel_copies_fast_to_a_large_result() -> None:
    fd = os.memfd_create("output")
    os.truncate(fd, _LARGE)
    drain = Drain(fd, MIB, 0)
    while not drain.done:
        drain.move(MIB)
    os.close(fd)
    result = drain.take()
    # Its last byte is a zero that no length counts.
    assert is_copied_to_fast(id(result) + bytes.__basicsize__ - 1)


def test_memory_without_a_mapping(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> Any:
        raise OSError(errno.ENOMEM, "there may be too many")

    monkeypatch.setattr(mmap, "mmap", refuse)
    buffer = scratch.allocate(1000)
    assert len(buffer) == 1000 and not buffer.readonly
    with pytest.raises(MemoryError):
        scratch.allocate(1 << 60)


def test_a_forked_child_has_its_own() -> None:
    buffer = scratch.borrow(100)
    assert in_a_fork(lambda: buffer.__setitem__(0, 2) or 0) == 0
    assert buffer[0] == 0
