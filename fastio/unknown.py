"""Settings that are none: variables and options of the service whose names fastio does not know."""

import os
from collections.abc import Sequence

from fastio import log
from fastio.config import SETTINGS
from fastio.errors import meant

#: Beginnings of variables that other programs of the project read: the load generator, the suites and the tests.
_OF_OTHERS = ("FASTIO_BENCHMARK_", "FASTIO_LOAD_", "FASTIO_TEST_", "FASTIO_UPSTREAM_")
#: what the service's files have, as it was given last
_options: tuple[str, ...] = ()
_told: set[str] = set()


def notes() -> list[str]:
    """What there is to say of each of them."""
    return [*_variables(), *_options]


def tell(options: Sequence[str] | None = None) -> None:
    """Log each of them, once in a process.

    :param options: what there is to say of those in the service's files, by default what was given last
    """
    global _options
    if options is not None:
        _options = tuple(options)
    for text in notes():
        if text not in _told:
            _told.add(text)
            log.log(log.WARNING, "fastio: %s", text)


def _variables() -> list[str]:
    known = [setting.env for setting in SETTINGS]
    return [
        f"environment {name}: there is no such setting{meant(name, known)}"
        for name in sorted(os.environ)
        if name.startswith("FASTIO_") and name not in known and not name.startswith(_OF_OTHERS)
    ]
