"""The scratch buffers."""

from collections.abc import Iterator

import pytest

from fastio.io import scratch


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
