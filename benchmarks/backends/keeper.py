"""Keep a backend's processes, and end them and their directory with whoever started them, however that one ends.

``python -IS keeper.py DIRECTORY`` reads one JSON object per line from its standard input and answers each with one
line on its standard output::

    {"command": [...], "environment": {...}, "directory": "...", "log": "..."}   ->  {"pid": 123} or {"error": "..."}

The end of its input, which is also what the kernel sends when the starter is killed, ends all descendants: SIGTERM,
then SIGKILL after :data:`GRACE` seconds. The keeper is their subreaper (prctl(2)), so daemons that fork away are
among them. Last it removes ``DIRECTORY``.

It is a script of the standard library, run in isolation, so that it starts fast and on any Python.
"""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time

#: seconds between SIGTERM and SIGKILL
GRACE = 5.0

_PR_SET_CHILD_SUBREAPER = 36


def descendants(pid: int) -> list[int]:
    """The children of a process, their children and so on, zombies excepted."""
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            state, parent = state_and_parent(int(entry))
            if state not in "ZX":
                parents.setdefault(parent, []).append(int(entry))
    found: list[int] = []
    left = [pid]
    while left:
        children = parents.get(left.pop(), [])
        found += children
        left += children
    return sorted(found)


def state_and_parent(pid: int) -> tuple[str, int]:
    """A process's state letter of proc(5) and its parent; ``("X", 0)`` where there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            # The name, in parentheses, may hold anything, blanks and parentheses included.
            fields = file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return "X", 0
    return fields[0], int(fields[1])


def _reap(*_: object) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _spawn(request: dict) -> dict:
    try:
        with open(request["log"], "ab") as log:
            process = subprocess.Popen(
                request["command"],
                env=request["environment"],
                cwd=request["directory"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Some servers signal their whole process group when they stop, which must not be the keeper's.
                start_new_session=True,
            )
    except OSError as error:
        return {"error": str(error)}
    # _reap() waits for it; subprocess must not warn that it was not waited for.
    process.returncode = 0
    return {"pid": process.pid}


def _end_all() -> None:
    deadline = time.monotonic() + GRACE
    told: set[int] = set()
    while left := descendants(os.getpid()):
        final = time.monotonic() > deadline
        for pid in left:
            if final or pid not in told:
                told.add(pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL if final else signal.SIGTERM)
        time.sleep(0.01)


def main(directory: str) -> None:
    # It was made not to block if the starter is monkey patched by eventlet.
    os.set_blocking(0, True)
    # Only the end of the input ends it. A handler, unlike SIG_IGN, is not inherited by the servers.
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, lambda *_: None)
    signal.signal(signal.SIGCHLD, _reap)
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        for line in sys.stdin:
            print(json.dumps(_spawn(json.loads(line))), flush=True)
    finally:
        _end_all()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1])
