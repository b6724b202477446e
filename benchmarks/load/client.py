"""Have a load carried out, from any process: Locust patches the one that imports it, so it gets one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.load.plan import Plan

ROOT = Path(__file__).resolve().parent.parent.parent


class LoadFailed(RuntimeError):
    """The load was not carried out; the message is what the generator said."""


#: Seconds between two looks at whether a load is to be stopped.
LOOK = 0.2
#: Seconds in which a generator that is told to end does.
GRACE = 15.0


def carry_out(plan: Plan, directory: Path, stop: threading.Event | None = None, longest: float = 0) -> Path:
    """Carry out a plan; its records are then in ``directory``, which is made.

    With worker processes, or with workers elsewhere, if the environment says so: ``FASTIO_LOAD_PROCESSES`` and the
    other variables of ``python -m benchmarks.load run``.

    :param stop: ends it when it is set
    :param longest: seconds after which it is ended in any case; 0: never
    :raises LoadFailed: if it could not be done, or was ended
    """
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(plan.to_dict(), file)
        file.flush()
        command = [sys.executable, "-m", "benchmarks.load", "run", file.name, "--output", str(directory)]
        with subprocess.Popen(
            command, env=environment, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            try:
                errors = _errors(process, stop, longest)
            except BaseException:
                _end(process)
                raise
    if process.returncode:
        raise LoadFailed(errors.strip() or f"exit status {process.returncode} of the load generator")
    return directory


def _errors(process: subprocess.Popen[str], stop: threading.Event | None, longest: float) -> str:
    """Wait for the end; returns what it said."""
    deadline = time.monotonic() + longest if longest else float("inf")
    while True:
        try:
            return process.communicate(timeout=LOOK)[1]
        except subprocess.TimeoutExpired:
            if stop is not None and stop.is_set():
                raise LoadFailed("the load was stopped") from None
            if time.monotonic() > deadline:
                raise LoadFailed(f"the load generator did not end in {longest:g} s") from None


def _end(process: subprocess.Popen[str]) -> None:
    """End a generator; it ends its workers."""
    process.terminate()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
