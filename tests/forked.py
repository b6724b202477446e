"""Forked children of a test."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable


def in_a_fork(function: Callable[[], int]) -> int:
    """The exit status of ``function`` in a forked child; a child that hangs is ended by the kernel."""
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(60)
            status = function()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
