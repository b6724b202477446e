"""The standard library's own objects, even if eventlet has replaced them.

Under ``eventlet.monkey_patch()``, threads, locks and sleeps are those of greenlets. Code that needs those of the
operating system asks here, at each use, because the service may monkey patch at any time.
"""

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
