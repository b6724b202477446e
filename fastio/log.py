"""fastio's log, the logger ``fastio``."""

import sys
from typing import Any

_NAME = "fastio"
#: Levels of :mod:`logging`.
DEBUG, INFO, WARNING, ERROR = 10, 20, 30, 40


def log(level: int, message: str, *arguments: object, exc_info: Any = None) -> None:
    """Log the message, as a logger does."""
    if level < WARNING and "logging" not in sys.modules:
        # No handler can have been set up, and importing logging would take a fifth of the time of fastio.patch().
        return
    import logging

    # Before our logger exists, the root logger decides, as it would for ours.
    known = logging.Logger.manager.loggerDict.get(_NAME)
    # logging's lock is not taken for records without a handler. Under eventlet.monkey_patch() it is a green one, for
    # which a thread waits for ever that finds it taken by another thread; so does a fork, since logging takes it then.
    if level >= (known if isinstance(known, logging.Logger) else logging.root).getEffectiveLevel():
        logging.getLogger(_NAME).log(level, message, *arguments, exc_info=exc_info)
