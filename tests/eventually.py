"""Waiting for what will come: a condition, never a time."""

import time
from collections.abc import Callable
from typing import Any

#: Seconds after which it is taken for certain that it does not come; many times what anything takes.
LONGEST = 120.0


def until(condition: Callable[[], Any], what: str = "it", seconds: float = LONGEST) -> Any:
    """Wait until the condition gives something true, and return that."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {seconds:g} s in vain for {what}"
        time.sleep(0.005)
    return found
