"""A child that does not seem to die, as one does not that the kernel holds in a system call."""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

#: Holds the death of a process back from its parent: first its tracer has to hear of it. It is there for 30 s, or until
#: its standard input ends.
_TRACER = """
import ctypes, select, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
print(libc.ptrace(0x4206, int(sys.argv[1]), 0, 0), flush=True)  # PTRACE_SEIZE
select.select([0], [], [], 30)
"""


@contextlib.contextmanager
def deathless(pid: int) -> Iterator[Callable[[], bool]]:
    """Let ``SIGKILL`` seem without effect on the child ``pid``; yields a function that asks whether it still does."""
    with subprocess.Popen(
        [sys.executable, "-ISc", _TRACER, str(pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=0
    ) as tracer:
        assert tracer.stdin is not None
        assert tracer.stdout is not None
        try:
            if tracer.stdout.readline().strip() != "0":
                pytest.skip("no process may trace another here")
            yield lambda: tracer.poll() is None
        finally:
            tracer.stdin.close()
            tracer.wait()
