"""The budget that all transfers share."""

import pytest

from fastio.concurrency.budget import FLOOR, PERIOD, Budget
from tests.child import MIB
from tests.forked import in_a_fork


class Clock:
    """Stands still unless a test has it go on."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def budget(clock: Clock) -> Budget:
    return Budget(clock)


def enter(budget: Budget, count: int) -> list[object]:
    transfers = [object() for _ in range(count)]
    for transfer in transfers:
        budget.enter(transfer)
    return transfers


@pytest.mark.parametrize(
    ("active", "asked", "more", "floor", "share"),
    [
        *((active, MIB, 0, FLOOR, share) for active, share in (
            (0, MIB), (1, MIB), (2, MIB // 2), (3, MIB // 3), (16, 65536), (17, FLOOR), (1000, FLOOR),
        )),
        # Less than the floor stays what it is.
        (3, 4096, 0, FLOOR, 4096), (3, FLOOR, 0, FLOOR, FLOOR), (3, FLOOR, 0, 4 * FLOOR, FLOOR),
        (3, MIB, 0, 8 * FLOOR, 8 * FLOOR),
        # Those that have not entered count where they ask.
        (0, MIB, 1, FLOOR, MIB), (3, MIB, 1, FLOOR, MIB // 4),
    ],
)  # fmt: skip
def test_shares_of_the_budget(budget: Budget, active: int, asked: int, more: int, floor: int, share: int) -> None:
    transfers = enter(budget, active)
    assert budget.active() == active
    assert budget.share(asked, more, floor) == share
    assert more or floor > FLOOR or budget.pipe_size(asked) == share
    for transfer in transfers:
        budget.leave(transfer)
    assert budget.active() == 0


def test_entering_and_leaving_twice(budget: Budget) -> None:
    (transfer,) = enter(budget, 1)
    budget.enter(transfer)
    assert budget.active() == 1
    budget.leave(transfer)
    budget.leave(transfer)
    assert budget.active() == 0
    budget.leave(object())


def test_a_forked_child_starts_without_the_parents_transfers(budget: Budget) -> None:
    transfers = enter(budget, 8)

    def in_the_child() -> bool:
        own = object()
        alone = budget.share(MIB) == MIB and budget.active() == 0
        budget.enter(own)
        counts = budget.active() == 1
        budget.leave(transfers[0])
        return alone and counts and budget.active() == 1

    assert in_a_fork(lambda: not in_the_child()) == 0
    assert budget.active() == 8


def test_a_transfer_that_waits_longer_than_a_turn_does_not_count(budget: Budget, clock: Clock) -> None:
    transfers = enter(budget, 40)
    for _ in range(4):
        clock.now += PERIOD
        budget.enter(transfers[0])
    assert budget.active() == 1
    assert budget.share(MIB) == budget.pipe_size(MIB) == MIB
    # It takes part again as soon as it moves bytes.
    budget.enter(transfers[1])
    assert budget.active() == 2


def test_a_transfer_that_moves_in_each_turn_counts_meanwhile(budget: Budget, clock: Clock) -> None:
    transfers = enter(budget, 3)
    for _ in range(100):
        clock.now += PERIOD * 0.9
        for transfer in transfers:
            budget.enter(transfer)
            assert budget.active() == 3


def test_a_thread_that_ends_in_the_middle_takes_nothing_with_it(budget: Budget, clock: Clock) -> None:
    """leave() is never called: its greenlets are never resumed."""
    enter(budget, 16)
    clock.now += 2 * PERIOD
    assert budget.active() == 0
    assert budget.share(MIB, more=1) == MIB
