"""Requirements and targets that several patches share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fastio.patching import holders
from fastio.patching.registry import Requirement, Target

EVENTLET = Requirement("eventlet", "0.34.3", "0.42")
GREEN_SUBPROCESS = "eventlet.green.subprocess"

Make = Callable[[Callable[..., Any], Any], Callable[..., Any]]

#: what a replacement or wrapper of ``_communicate`` relies on, first itself
_COMMUNICATE = (
    "_communicate",
    "_save_input",
    "_check_timeout",
    "_remaining_time",
    "_translate_newlines",
    "communicate",
)


def native_popen(make: Make, *methods: str, relies_on: Sequence[str] = ()) -> Target:
    """The first of ``methods`` of the standard library's Popen; the others are what ``make`` relies on."""
    fingerprints = tuple((name, f"subprocess:Popen.{name}") for name in methods)
    return Target(
        "subprocess",
        f"Popen.{methods[0]}",
        make,
        fingerprints,
        find_owner=holders.native_popen,
        relies_on=relies_on,
    )


def green_popen(make: Make, *methods: str, own: bool = False, relies_on: Sequence[str] = ()) -> Target:
    """The first of ``methods`` of eventlet's Popen: CPython's code that it inherits or copies, or its ``own``."""
    module = GREEN_SUBPROCESS if own else "subprocess"
    fingerprints = tuple((name, f"{module}:Popen.{name}") for name in methods)
    name = f"Popen.{methods[0]}"
    return Target(GREEN_SUBPROCESS, name, make, fingerprints, requires=(EVENTLET,), relies_on=relies_on)


def native_communicate(make: Make) -> Target:
    """``_communicate`` of the standard library's Popen."""
    return native_popen(make, *_COMMUNICATE)


def green_communicate(make: Make) -> Target:
    """``_communicate`` of eventlet's Popen."""
    return green_popen(make, *_COMMUNICATE)
