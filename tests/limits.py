"""A hard limit for tests that could hang: a faulty transfer blocks in the kernel or spins, and never comes back.

A signal would raise inside eventlet's hub, so it is faulthandler's thread that shows where everything stands and ends
the whole run. Modules whose tests can block import the fixture.
"""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Iterator

import pytest

#: Seconds for one test, many times what the slowest needs on a busy machine; a real server's start may be among it.
LIMIT = 600


@pytest.fixture(scope="session")
def real_stderr(pytestconfig: pytest.Config) -> Iterator[int]:
    """The descriptor that pytest's own stderr had before it captured the tests' output."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        fd = os.dup(2)
    yield fd
    os.close(fd)


@pytest.fixture(autouse=True)
def hard_limit(real_stderr: int) -> Iterator[None]:
    """End the run, with the stack of every thread, if the test takes longer than ``LIMIT`` seconds."""
    faulthandler.dump_traceback_later(LIMIT, exit=True, file=real_stderr)
    yield
    faulthandler.cancel_dump_traceback_later()
