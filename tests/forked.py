"""Forked children of a test."""

import json
import os
import signal
from collections.abc import Callable
from typing import Any


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


def told_by_a_fork(function: Callable[[], Any]) -> Any:
    """Return ``function()`` of a forked child: a short value that JSON can carry."""
    reader, writer = os.pipe()

    def tell() -> int:
        os.write(writer, json.dumps(function()).encode())
        return 0

    try:
        assert in_a_fork(tell) == 0
    finally:
        os.close(writer)
        with open(reader, "rb") as file:
            told = file.read()
    return json.loads(told)
