"""What the standard library has, also where eventlet has replaced it: the writer is a thread of the operating system.

Under ``eventlet.monkey_patch()`` a thread, a lock or a sleep is one of greenlets; a writer made of those would have to
wait for the hub, and the hub for its files.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any


def module(name: str) -> Any:
    """The standard library's own ``name``."""
    patcher = sys.modules.get("eventlet.patcher")
    if patcher is None:
        return importlib.import_module(name)
    return patcher.original(name)
