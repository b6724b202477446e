"""``communicate()`` that is called while another call for the same child is in progress."""

import signal
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import MONKEY_PATCHED

if MONKEY_PATCHED:
    pytest.skip("the native Popen", allow_module_level=True)

import subprocess  # noqa: E402

LINES = [str(number) for number in range(40)]
#: Writes a line every 10 ms.
CHILD = f"import time\nfor line in {LINES!r}:\n    print(line, flush=True)\n    time.sleep(0.01)"


def start() -> "subprocess.Popen[bytes]":
    # A second pipe, or communicate() would be one read().
    popen = subprocess.Popen([sys.executable, "-ISc", CHILD], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    # Only after a first call do those that follow go on with what it has read.
    with pytest.raises(subprocess.TimeoutExpired):
        popen.communicate(timeout=0.001)
    return popen


def look(popen: "subprocess.Popen[bytes]", seen: list[list[str]]) -> None:
    """Ask for what there is by now."""
    try:
        popen.communicate(timeout=0.05)
    except subprocess.TimeoutExpired as error:
        seen.append((error.output or b"").decode().split())


@pytest.fixture
def alarm() -> Any:
    """``alarm(function)`` calls it in a signal handler soon, and once more later."""
    before = signal.getsignal(signal.SIGALRM)

    def start(function: Callable[[], None]) -> None:
        signal.signal(signal.SIGALRM, lambda *_: function())
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)

    yield start
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_a_signal_handler_sees_the_output_and_leaves_it_in_order(patched: Any, alarm: Any) -> None:
    popen = start()
    seen: list[list[str]] = []

    def handler() -> None:
        if len(seen) < 2:
            look(popen, seen)

    alarm(handler)
    output = popen.communicate()[0].decode().split()
    assert output == LINES
    assert seen and all(lines and lines == LINES[: len(lines)] for lines in seen)
