"""A service's log, in a form that can be compared."""

import re
from collections.abc import Iterable
from typing import NamedTuple

#: One line of the log: level, logger, message; the lines of a traceback have a bar before them.
FORMAT = "%(levelname)s %(name)s %(message)s"
#: Options of glance-api.conf for it.
OPTIONS = {
    "logging_default_format_string": FORMAT,
    "logging_context_format_string": FORMAT,
    "logging_exception_prefix": "%(levelname)s %(name)s |",
}
_LINE = re.compile(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL) (\S+) \|?(.*)")
#: The last line of a traceback.
_EXCEPTION = re.compile(r"((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Full|Exit|Interrupt|NotFound|Timeout))\b")


class Line(NamedTuple):
    level: str
    logger: str
    message: str


def lines(text: str, levels: Iterable[str]) -> list[Line]:
    """The lines at these levels."""
    found = (_LINE.match(line) for line in text.splitlines())
    return [Line(*match.groups()) for match in found if match and match[1] in levels]


def classes(text: str) -> list[str]:
    """Return the records at WARNING or above, as ``level logger``, and the exceptions in any traceback, in order.

    Neither messages, which hold ids and times, nor frames of tracebacks, which differ between stock and patched.
    """
    found: list[str] = []
    where = ""
    for line in text.splitlines():
        match = _LINE.match(line)
        level, logger, message = match.groups() if match else ("", "", line)
        raised = _EXCEPTION.match(message)
        # Whether a socket was full when its client went away is chance.
        if raised and raised[1] != "BlockingIOError":
            found.append(f"{where}: {raised[1]}")
        elif match and (level, logger) != tuple(where.split()):
            where = f"{level} {logger}"
            if level in ("WARNING", "ERROR", "CRITICAL"):
                found.append(where)
    return found
