"""A pytest plugin: a test that exceeds its time limit ends the whole run with the stacks of all threads.

pytest's ``faulthandler_timeout`` has one limit for all tests, and none for a collection or for what follows a failure.
As there, a thread of faulthandler's writes the stacks, which needs neither the GIL nor a hub. The marker
``limit(seconds)`` gives a test another limit. The variable ``TEST_LIMIT`` replaces :data:`LIMIT`, and the markers'
limits change in proportion; 0 is no limit.
"""

import faulthandler
import os
from collections.abc import Iterator
from functools import partial

import pytest

#: Seconds for a test with its fixtures, or for the import of a file of tests: many times the need of a busy machine.
LIMIT = 120.0
VARIABLE = "TEST_LIMIT"


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"limit(seconds): of the test with its fixtures, instead of {LIMIT:g}")
    text = os.environ.get(VARIABLE) or f"{LIMIT}"
    try:
        scale = float(text) / LIMIT
        if not 0 <= scale < 1e6:
            raise ValueError
    except ValueError:
        raise pytest.UsageError(f"{VARIABLE}={text!r} is not a number of seconds; 0 is no limit") from None
    if scale:
        # The stacks are not to be captured with the test's output.
        with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            config.pluginmanager.register(Limits(scale, os.dup(2)), "time limits")


class Limits:
    """The hooks that set faulthandler's only timer, before each part of a run."""

    def __init__(self, scale: float, stderr: int) -> None:
        self._begin = partial(faulthandler.dump_traceback_later, exit=True, file=stderr)
        self._scale = scale
        self._seconds = LIMIT

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        marker = item.get_closest_marker("limit")
        self._seconds = float(marker.args[0]) if marker else LIMIT
        self._begin(self._seconds * self._scale)
        return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_exception_interact(self) -> None:
        # pytest has just cancelled it, and the fixtures of the test that failed are still to end.
        self._begin(self._seconds * self._scale)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectstart(self) -> None:
        self._begin(LIMIT * self._scale)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        # Threads that still run hold up Python at its end.
        self._begin(LIMIT * self._scale)
