"""What a patch's count of a call costs, in each of the ways in which patches count.

Parameters:

``count``
    calls

Results: ``call_ns``, nanoseconds of CPU for each call, less those of the same calls uncounted.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from fastio.counters import Reason, Tally
from fastio.patching import hooks

#: Takes so many calls.
Loop = Callable[[range], None]


def _call() -> None:
    pass


def _calls(calls: range) -> None:
    for _ in calls:
        _call()


def _nothing(calls: range) -> None:
    for _ in calls:
        pass


def hooked(tally: Tally) -> tuple[Loop, Loop]:
    """The hook counts."""
    counted = hooks.counted(_call, tally)

    def loop(calls: range) -> None:
        for _ in calls:
            counted()

    return loop, _calls


def took(tally: Tally) -> tuple[Loop, Loop]:
    """The patch counts a call."""

    def loop(calls: range) -> None:
        for _ in calls:
            tally.took()

    return loop, _nothing


def in_place(tally: Tally) -> tuple[Loop, Loop]:
    """The patch counts a call and its bytes without a call of any function."""

    def loop(calls: range) -> None:
        for _ in calls:
            tally.calls += 1
            tally.bytes += 1

    return loop, _nothing


def fell_back(tally: Tally) -> tuple[Loop, Loop]:
    """The patch leaves a call to upstream's code."""

    def loop(calls: range) -> None:
        for _ in calls:
            tally.fell_back(Reason.HUB)

    return loop, _nothing


def _variant(way: Callable[[Tally], tuple[Loop, Loop]]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    def run(parameters: Mapping[str, Any]) -> dict[str, Any]:
        tally = Tally("benchmark")
        counted, uncounted = way(tally)
        calls = range(parameters["count"])
        start, cpu = time.perf_counter(), time.process_time()
        counted(calls)
        middle = time.process_time()
        uncounted(calls)
        end = time.process_time()
        counts = tally.calls + sum(tally.fallbacks.values())
        return {
            "seconds": time.perf_counter() - start, "cpu_seconds": end - cpu, "bytes": 0,
            "verified": counts == len(calls), "call_ns": (middle - cpu - (end - middle)) / len(calls) * 1e9,
        }  # fmt: skip

    return run


VARIANTS = {way.__name__: _variant(way) for way in (hooked, took, in_place, fell_back)}
