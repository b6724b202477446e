"""Processes that use the processors while something is measured, as other services of a machine do."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

#: They end by themselves once whoever started them is gone, however that ended.
_PROGRAM = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    for _ in range(1_000_000):
        pass
"""


@contextlib.contextmanager
def busy(count: int) -> Iterator[list[int]]:
    """Have processes compute within the block, each as much as it gets; yields their numbers."""
    with contextlib.ExitStack() as stack:
        pids = []
        for _ in range(count):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-S", "-c", _PROGRAM, str(os.getpid())]))
            stack.callback(process.kill)
            pids.append(process.pid)
        yield pids
