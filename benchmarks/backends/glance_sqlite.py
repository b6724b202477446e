"""Imported by glance 33's server: sqlite's transactions take their lock at their beginning.

Threads that read first and write later in a transaction each keep the other from writing, and sqlite ends one of them
with "database is locked". A service has a database server, where they wait. This makes them wait in sqlite.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine


@event.listens_for(Engine, "before_cursor_execute", retval=True)
def _begin(
    conn: Any, cursor: Any, statement: str, parameters: Any, context: Any, executemany: bool
) -> tuple[str, Any]:
    return ("BEGIN IMMEDIATE" if statement == "BEGIN" else statement), parameters
