"""What the standard library has, also where eventlet has replaced it.

Under ``eventlet.monkey_patch()`` a thread, a lock or a sleep is one of greenlets. What has to be the operating system's
is asked for here, at each use: the service may monkey patch at any time.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any


def module(name: str) -> Any:
    """The standard library's own ``name``."""
    patcher = sys.modules.get("eventlet.patcher")
    if patcher is None:
        return importlib.import_module(name)
    return patcher.original(name)


def start_new_thread() -> Callable[..., Any]:
    """``_thread.start_new_thread`` of the operating system's threads."""
    start: Callable[..., Any] = module("_thread").start_new_thread
    return start
