"""After a time-out and a kill, ``communicate()`` waits for the outputs, and not for heirs of stdin."""

import contextlib
import os
import sys
from types import ModuleType

import pytest

import fastio
from tests.child import data
from tests.targets import SENDS_REST

#: Holds the child's stdin and reads nothing, until its own input ends.
GRANDCHILD = """
import subprocess, sys
holder = [sys.executable, "-c", "import os; os.read(int(os.environ['UNTIL']), 1)"]
subprocess.Popen(holder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False)
print("ready", flush=True)
import time
time.sleep(1000)
"""


@pytest.mark.skipif(SENDS_REST, reason="upstream waits until all of the input is sent")
def test_a_grandchild_holds_stdin(sp: ModuleType) -> None:
    until_read, until_written = os.pipe()
    os.set_inheritable(until_read, True)
    found = []
    try:
        for patched in (False, True):
            with fastio.patched() if patched else contextlib.nullcontext():
                popen = sp.Popen(
                    [sys.executable, "-c", GRANDCHILD], env={**os.environ, "UNTIL": str(until_read)},
                    pass_fds=[until_read], stdin=-1, stdout=-1, stderr=-1,
                )  # fmt: skip
                assert popen.stdout.readline() == b"ready\n"
                # Stock eventlet's exception is of a hidden class.
                with pytest.raises(Exception, match="timed out"):
                    popen.communicate(data(1, 3_000_001), timeout=0)
                popen.kill()
                found.append((popen.communicate(), popen.returncode))
    finally:
        os.close(until_written)
        os.close(until_read)
    assert found == [((b"", b""), -9)] * 2
