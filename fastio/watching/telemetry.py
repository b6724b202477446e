"""The counts for OpenTelemetry: the program's own SDK asks for them when it gathers, and sends them on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from fastio.version import VERSION
from fastio.watching import metrics
from fastio.watching.metrics import COUNTERS

_UNITS = {"bytes": "By", "io": ""}

on = False
_instruments: list[Any] = []


def switch(to: bool) -> None:
    """Have the counts be there for whoever gathers; or no more."""
    global on
    on = to
    if on and not _instruments:
        from opentelemetry.metrics import Observation, get_meter

        meter = get_meter("fastio", VERSION)
        for name, meaning in COUNTERS.items():
            # The API keeps it until the program has set up its SDK.
            observe = [_observe(name, Observation)]
            unit = _UNITS.get(name, "{call}")
            _instruments.append(meter.create_observable_counter(f"fastio.{name}", observe, unit, meaning))


def _observe(counter: str, observation: Callable[..., Any]) -> Callable[[Any], Iterable[Any]]:
    def observe(options: Any) -> Iterable[Any]:
        if not on:
            return []
        # Workers have the resource of the process that they were forked from.
        own = {"process.pid": os.getpid()}
        found = metrics.read().series()
        return [observation(each.value, {**each.labels, **own}) for each in found if each.counter == counter]

    return observe
