"""Whether a backend that is missing skips its tests or fails them."""

import os
from typing import NoReturn

import pytest

from benchmarks.backends import backend
from benchmarks.backends.base import Backend

#: Names of backends, with blanks between them, whose tests must run: CI's, which would else skip what it is to test.
VARIABLE = "BACKENDS_REQUIRED"


def missing(name: str, reason: str) -> NoReturn:
    """Skip the test, with the reason, or fail it if the backend is required."""
    if name in os.environ.get(VARIABLE, "").split():
        pytest.fail(f"{name} is in {VARIABLE}; {reason}")
    pytest.skip(reason)


def usable(name: str) -> type[Backend]:
    """The class of a backend that can be started here; else see :func:`missing`."""
    reason = backend(name)().why_not()
    if reason:
        missing(name, reason)
    return backend(name)
