"""Runs a load from any process. Locust patches the process that imports it, so it runs in a separate one."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.load import Failed
from benchmarks.load.plan import Plan

ROOT = Path(__file__).resolve().parent.parent.parent

#: Seconds between two looks at whether a load is to be stopped.
LOOK = 0.2
#: Seconds that a generator has to end after it was asked to.
GRACE = 15.0


def carry_out(plan: Plan, directory: Path, stop: threading.Event | None = None, longest: float = 0) -> Path:
    """Carry out a plan; its records are then in ``directory``, which is made.

    With worker processes, or with workers elsewhere, according to the environment: ``FASTIO_LOAD_PROCESSES`` and the
    other variables of ``python -m benchmarks.load run``.

    :param stop: ends it when it is set
    :param longest: seconds after which it is ended in any case; 0: never
    :raises Failed: if it could not be done, or was ended
    """
    with Generator(directory) as generator:
        return generator.carry_out(plan, stop, longest)


class Generator:
    """A load generator that gets ready, which takes a second or two, while others do; for one plan.

    :param directory: where the records will be
    :param environment: wins over this process's
    """

    def __init__(self, directory: Path, environment: Mapping[str, str] | None = None) -> None:
        # It has another current directory, from which it can be imported.
        self._directory = directory.absolute()
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.load", "run", "-", "--output", str(self._directory), "--quiet"],
            cwd=ROOT, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **(environment or {})},
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip

    def carry_out(self, plan: Plan, stop: threading.Event | None = None, longest: float = 0) -> Path:
        """As the function :func:`carry_out`."""
        deadline = time.monotonic() + longest if longest else float("inf")
        given: str | None = json.dumps(plan.to_dict())
        while True:
            try:
                errors = self._process.communicate(given, timeout=LOOK)[1]
                break
            except subprocess.TimeoutExpired:
                # The rest of it goes on, and is not sent again.
                given = None
            if stop is not None and stop.is_set():
                raise Failed("the load was stopped")
            if time.monotonic() > deadline:
                raise Failed(f"the load generator did not end in {longest:g} s")
        if self._process.returncode:
            raise Failed(errors.strip() or f"exit status {self._process.returncode} of the load generator")
        return self._directory

    def __enter__(self) -> Generator:
        return self

    def __exit__(self, *_: object) -> None:
        """End it, and it its workers, if it has not been used or what it did was stopped."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.communicate(timeout=GRACE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        # Workers that it could not end may hold the other ends for as long as they wait for a master.
        for stream in (self._process.stdin, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
