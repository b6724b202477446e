"""fastio's log, the logger ``fastio``."""

import sys
from typing import Any

#: Levels of :mod:`logging`.
DEBUG, INFO, WARNING, ERROR = 10, 20, 30, 40


def log(level: int, message: str, *arguments: object, exc_info: Any = None) -> None:
    """Log the message, as a logger does."""
    if level < WARNING and "logging" not in sys.modules:
        # Nobody can have asked for it, and importing logging would take a fifth of the time of fastio.patch().
        return
    import logging

    logging.getLogger("fastio").log(level, message, *arguments, exc_info=exc_info)
