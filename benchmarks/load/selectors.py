"""Numbers that are chosen as COSBench writes it: of containers, of objects, of bytes.

``c(7)``
    always 7
``u(1,50)``
    any from 1 to 50, all as likely as each other
``r(1,50)``, ``s(1,50)``
    1, 2 and so on, and after 50 again 1
``h(1|10|70,11|100|30)``
    from 1 to 10 in 70 of 100 cases, from 11 to 100 in the others

Sizes have a unit at their end: ``B``, ``KB``, ``MB``, ``GB`` as COSBench has them (powers of 1000), or ``KiB``,
``MiB``, ``GiB``. Which number is the n-th follows from the seed, as everything in a plan does.
"""

import functools
import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.load import Wrong

UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
#: Of those without an upper end, as in COSBench.
HIGHEST = (1 << 31) - 1
FORMS = "c(N), u(LOW,HIGH), r(LOW,HIGH), s(LOW,HIGH), h(LOW|HIGH|WEIGHT,...)"

_PATTERN = re.compile(r"([curs])\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)|h\(([^()]*)\)|(\d+)-(\d+)")
_BUCKET = re.compile(r"\s*(\d+)\s*\|\s*(\d*)\s*\|\s*(\d+)\s*")
_WORD = (1 << 64) - 1


def mixed(seed: int, index: int) -> int:
    """64 bits that look random (the finalizer of SplitMix64)."""
    value = (seed * 0x9E3779B97F4A7C15 + index * 0xD1342543DE82EF95 + 0x632BE59BD9B4E019) & _WORD
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & _WORD
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & _WORD
    return value ^ value >> 31


class Selector(NamedTuple):
    """The numbers that a text chooses from; :attr:`low` and :attr:`high` are among it."""

    #: c, u, r, s or h
    kind: str
    low: int
    high: int
    #: of a histogram: how often, and from what
    buckets: "Sequence[tuple[int, Selector]]" = ()

    @property
    def width(self) -> int:
        """How many numbers there are between the two ends."""
        return self.high - self.low + 1

    def number(self, rank: int, seed: int = 0) -> int:
        """The number of so high a rank, counted from 0."""
        if self.kind == "c":
            return self.low
        if self.kind == "h":
            place = mixed(seed, rank) % sum(weight for weight, _ in self.buckets)
            ends = itertools.accumulate(weight for weight, _ in self.buckets)
            chosen = next(bucket for end, (_, bucket) in zip(ends, self.buckets, strict=True) if place < end)
            return chosen.number(rank, seed + 1)
        return self.low + (mixed(seed, rank) if self.kind == "u" else rank) % self.width


@functools.lru_cache(maxsize=256)
def selector(text: str) -> Selector:
    """The selector that a text means.

    :raises Wrong: if it is none
    """
    found = _PATTERN.fullmatch(text.strip())
    if found is None:
        raise Wrong(f"{text!r} is not one of {FORMS}")
    kind, low, high, buckets, old_low, old_high = found.groups()
    if buckets is not None:
        return _histogram(text, buckets)
    if kind is None:
        kind, low, high = "r", old_low, old_high
    first = int(low)
    if kind == "c":
        if high is not None:
            raise Wrong(f"{text!r} is not c(N)")
        return Selector(kind, first, first)
    if high is None and kind != "u":
        raise Wrong(f"{text!r} has no upper end; allowed is {kind}(LOW,HIGH)")
    return _checked(text, Selector(kind, first, HIGHEST if high is None else int(high)))


def _checked(text: str, made: Selector) -> Selector:
    if not 1 <= made.low <= made.high <= HIGHEST:
        raise Wrong(f"{text!r}: the ends must be from 1 to {HIGHEST}, the lower one first")
    return made


def _histogram(text: str, buckets: str) -> Selector:
    made = []
    for each in buckets.split(","):
        found = _BUCKET.fullmatch(each)
        if found is None:
            raise Wrong(f"{text!r}: {each!r} is not LOW|HIGH|WEIGHT")
        low, high, weight = found.groups()
        made.append((int(weight), _checked(text, Selector("u", int(low), int(high or HIGHEST)))))
    if not any(weight for weight, _ in made):
        raise Wrong(f"{text!r}: all weights are 0")
    return Selector("h", min(each.low for _, each in made), max(each.high for _, each in made), tuple(made))


@functools.lru_cache(maxsize=256)
def size_selector(text: str) -> tuple[Selector, int]:
    """The selector of a size, and the bytes of its unit.

    :raises Wrong: if the text is no such one
    """
    plain, close, unit = text.strip().rpartition(")")
    if unit.strip() not in UNITS:
        raise Wrong(f"{text!r} does not end with one of the units {', '.join(UNITS)}, as c(64)KB does")
    return selector(plain + close), UNITS[unit.strip()]


def size(text: str, rank: int, seed: int = 0) -> int:
    """Bytes of the object of so high a rank. Raises :class:`Wrong`."""
    chosen, unit = size_selector(text)
    return chosen.number(rank, seed) * unit
