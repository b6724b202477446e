"""Which operation is the n-th of a plan: a function of the plan alone, however many workers share the work.

So two runs of a plan do the same operations to the same objects, and workers need not talk to each other: each takes
every ``workers``-th number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.load.plan import Operation, Plan

_WORD = (1 << 64) - 1


class Step(NamedTuple):
    """One operation to do."""

    kind: str
    #: of the object
    number: int


def mixed(seed: int, index: int) -> int:
    """64 bits that look random (the finalizer of SplitMix64)."""
    value = (seed * 0x9E3779B97F4A7C15 + index * 0xD1342543DE82EF95 + 0x632BE59BD9B4E019) & _WORD
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & _WORD
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & _WORD
    return value ^ value >> 31


class Schedule:
    """The operations of a plan by number."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        whole = sum(operation.weight for operation in plan.operations)
        #: upper ends of the operations' shares of [0, 1)
        self._shares: list[tuple[float, Operation]] = []
        reached = 0.0
        for operation in plan.operations:
            reached += operation.weight / whole
            self._shares.append((reached, operation))

    def step(self, index: int) -> Step:
        operation = self._operation(index)
        if operation.selection == "each":
            offset = index % operation.count
        else:
            offset = mixed(self._plan.seed + 1, index) % operation.count
        return Step(operation.kind, operation.first + offset)

    def _operation(self, index: int) -> Operation:
        if len(self._shares) == 1:
            return self._shares[0][1]
        place = mixed(self._plan.seed, index) / (_WORD + 1)
        for end, operation in self._shares:
            if place < end:
                return operation
        # The shares may add up to a little less than 1.
        return self._shares[-1][1]

    def share(self, worker: int, workers: int) -> Iterator[Step]:
        """The operations of one of so many workers, in order; without an end if the plan has no ``total``."""
        index = worker
        while not self._plan.total or index < self._plan.total:
            yield self.step(index)
            index += workers
