"""Which operation is the n-th of a plan: a function of the plan alone, however many workers share the work.

Two runs of a plan thus do the same operations to the same objects, and workers need not talk to each other: each takes
every ``workers``-th number.
"""

import math
from collections.abc import Iterator
from itertools import count, islice
from typing import NamedTuple

from benchmarks.load import Wrong, selectors
from benchmarks.load.plan import Plan
from benchmarks.load.selectors import mixed

#: Of an object that was not written by the plan's own rules.
UNKNOWN_SIZE = -1

#: Places of a block of operations, at the most; COSBench's ratios are percents.
_LONGEST_BLOCK = 1000


class Step(NamedTuple):
    """One operation to do."""

    kind: str
    #: of the object: it says what is in it
    number: int
    container: str
    #: of the object in its container
    name: str
    #: bytes, or :data:`UNKNOWN_SIZE`
    size: int
    #: seconds after the begin of the run; None in a closed loop
    due: float | None = None


def due(plan: Plan) -> Iterator[float]:
    """When the operations of an open loop are due, one after the other, in seconds after the begin of the run.

    The gaps of a Poisson process have an exponential distribution: they are drawn by inversion.
    """
    moment = 0.0
    for index in count():
        yield moment
        moment -= math.log1p(-mixed(plan.seed + 2, index) / (1 << 64)) / plan.rate


class Schedule:
    """The operations of a plan by number. In each block of them all have exactly their weights' shares, shuffled.

    The rank of an operation among those of its kind is thus known, which r() and s() count.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        weights = [operation.weight for operation in plan.operations]
        self._counts = [weight // math.gcd(*weights) for weight in weights]
        self._length = sum(self._counts)
        if self._length > _LONGEST_BLOCK:
            raise Wrong(f"the weights add up to {self._length}, which is more than {_LONGEST_BLOCK}")
        self._block = -1
        #: of the block: which operation, and its rank in it among those of its kind
        self._places: list[tuple[int, int]] = []

    def step(self, index: int) -> Step:
        block, place = divmod(index, self._length)
        if block != self._block:
            self._block, self._places = block, self._shuffled(block)
        which, rank = self._places[place]
        rank += block * self._counts[which]
        operation = self._plan.operations[which]
        # Operations must not all choose the same numbers at the same time.
        seed = self._plan.seed + 16 * which
        chosen = selectors.selector(operation.containers.selector)
        container = chosen.number(rank, seed + 2)
        if operation.objects is None:
            return Step(operation.kind, container << 32, operation.containers.name(container), "", UNKNOWN_SIZE)
        objects = selectors.selector(operation.objects.selector)
        if operation.scan:
            container, number = divmod(rank % operation.scanned, objects.width)
            container, number = chosen.low + container, objects.low + number
        else:
            number = objects.number(rank, seed + 3)
        size = selectors.size(operation.sizes, rank, seed + 4) if operation.sizes else UNKNOWN_SIZE
        names = operation.containers.name(container), operation.objects.name(number)
        return Step(operation.kind, container << 32 | number, *names, size)

    def _shuffled(self, block: int) -> list[tuple[int, int]]:
        kinds = [which for which, count in enumerate(self._counts) for _ in range(count)]
        order = sorted(range(self._length), key=lambda place: mixed(self._plan.seed, block * self._length + place))
        # Whichever places an operation gets, its ranks follow each other in them.
        ranks = [count() for _ in self._counts]
        return [(kinds[place], next(ranks[kinds[place]])) for place in order]

    def share(self, worker: int, workers: int) -> Iterator[Step]:
        """The operations of one of so many workers, in order; without an end if the plan has no ``total``.

        In an open loop it ends with the last one that is due within the plan's ``seconds``.
        """
        plan = self._plan
        numbers = range(worker, plan.total, workers) if plan.total else count(worker, workers)
        if not plan.rate:
            yield from map(self.step, numbers)
            return
        for index, moment in zip(numbers, islice(due(plan), worker, None, workers), strict=False):
            if plan.seconds and moment >= plan.seconds:
                return
            yield self.step(index)._replace(due=moment)
