"""What fastio gained and lost where it was measured, by the store and by how glance-api is served.

``expected.json`` is written from the results in ``doc/source/results`` by ``python -m benchmarks.tools.expected``.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from fastio.tables import Table, number

#: How glance-api is served: by its own eventlet server, or by uWSGI and others on native threads.
EVENTLET, THREADS = "eventlet", "threads"
WAYS = (EVENTLET, THREADS)

BETTER, WORSE, UNCLEAR, FEW = "better", "worse", "no clear difference", "too few rounds to tell"
#: Fewer rounds than this have no interval.
FEW_ROUNDS = 3


def verdict(low: float, high: float, rounds: int) -> str:
    """What the 95 % interval of a ratio says."""
    if rounds < FEW_ROUNDS:
        return FEW
    return BETTER if low > 1 else WORSE if high < 1 else UNCLEAR


@dataclass(frozen=True)
class Gain:
    """A figure without fastio and with it."""

    store: str
    #: of :data:`WAYS`
    way: str
    #: what was measured, such as ``download of 1 GiB from glance 32``
    what: str
    unit: str
    stock: float
    fastio: float
    #: how many times as good the figure is with fastio, whether more or less of it is better; below 1 it is worse
    times: float
    #: the 95 % interval of ``times``
    low: float
    high: float
    #: how often each of the two was measured
    rounds: int
    #: the result, a file of doc/source/results
    source: str

    def verdict(self) -> str:
        return verdict(self.low, self.high, self.rounds)


@lru_cache(maxsize=1)
def gains() -> list[Gain]:
    """All of them, as committed."""
    from importlib.resources import files

    return [Gain(**each) for each in json.loads(files("fastio").joinpath("expected.json").read_text(encoding="utf-8"))]


def of(stores: Iterable[str], ways: Iterable[str]) -> list[Gain]:
    """Those of the stores, and of these ways of serving."""
    stores, ways = set(stores), set(ways)
    return [each for each in gains() if each.store in stores and each.way in ways]


def table(chosen: Iterable[Gain]) -> Table:
    """The figures, each with its result."""
    rows = [
        [
            each.what,
            each.way,
            f"{number(each.stock)} {each.unit}",
            f"{number(each.fastio)} {each.unit}",
            f"{number(each.times)} x",
            each.verdict(),
            each.source,
        ]
        for each in chosen
    ]
    return Table("", ["measured", "way", "stock", "fastio", "gain", "verdict", "result"], rows)
