"""The orders in which a service may import, patch, unpatch and monkey patch."""

from collections import Counter
from collections.abc import Iterator

#: Modules that can be imported explicitly; the question is asked of everything that is imported, whichever of these it
#: was.
TARGETS = (
    "subprocess",
    "oslo_concurrency.processutils",
    "eventlet.green.subprocess",
    "eventlet.greenio",
)
STEPS = ("import", "patch", "patch", "unpatch", "unpatch", "monkey_patch")


def orders(steps: tuple[str, ...] = STEPS) -> Iterator[tuple[str, ...]]:
    """Every distinct order of ``steps``."""
    if not steps:
        yield ()
    for first in Counter(steps):
        rest = list(steps)
        rest.remove(first)
        for order in orders(tuple(rest)):
            yield (first, *order)


#: Each order is with one target, in rotation.
CASES = [(TARGETS[number % len(TARGETS)], order) for number, order in enumerate(orders())]
