"""``communicate()`` that is called while another call for the same child is in progress."""

import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.child import Gate

LINES = [str(number) for number in range(40)]
#: Writes a line every 10 ms, and the last one when it may.
CHILD = f"""
import os, sys, time
for line in {LINES[:-1]!r}:
    print(line, flush=True)
    time.sleep(0.01)
os.read(int(sys.argv[1]), 1)
print({LINES[-1]!r})
"""


def start(gate: Gate) -> "subprocess.Popen[bytes]":
    # A second pipe, or communicate() would be one read().
    popen = subprocess.Popen([sys.executable, "-ISc", CHILD, str(gate.fds[0])], pass_fds=gate.fds, stdout=-1, stderr=-1)
    # Only after a first call do those that follow go on with what it has read.
    with pytest.raises(subprocess.TimeoutExpired):
        popen.communicate(timeout=0.001)
    return popen


def look(popen: "subprocess.Popen[bytes]", seen: list[list[str]]) -> None:
    """Ask for what there is by now."""
    try:
        popen.communicate(timeout=0.05)
    except subprocess.TimeoutExpired as error:
        if error.output:
            seen.append(error.output.decode().split())


@pytest.fixture
def alarm() -> Any:
    """``alarm(function)`` calls it in a signal handler every 0.1 s."""
    before = signal.getsignal(signal.SIGALRM)

    def start(function: Callable[[], None]) -> None:
        signal.signal(signal.SIGALRM, lambda *_: function())
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)

    yield start
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_a_signal_handler_sees_the_output_and_leaves_it_in_order(patched: Any, alarm: Any, gate: Gate) -> None:
    popen = start(gate)
    seen: list[list[str]] = []

    def handler() -> None:
        if len(seen) < 2:
            look(popen, seen)
            if len(seen) == 2:
                gate.open()

    alarm(handler)
    output = popen.communicate()[0].decode().split()
    assert output == LINES
    assert len(seen) == 2 and all(lines == LINES[: len(lines)] for lines in seen)
