"""Runs a load from any process. Locust patches the process that imports it, so it has a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.load import Failed
from benchmarks.load.plan import Plan

ROOT = Path(__file__).resolve().parent.parent.parent

#: Seconds between two looks at whether a load is to be stopped.
LOOK = 0.2
#: Seconds that a generator has to end after it was asked to.
GRACE = 15.0


class LoadFailed(Failed):
    """The load was not carried out; the message is what the generator said."""


def carry_out(
    plan: Plan, directory: Path, stop: threading.Event | None = None, longest: float = 0,
    show: Callable[[str], None] | None = None,
) -> Path:  # fmt: skip
    """Carry out a plan; its records are then in ``directory``, which is made.

    With worker processes, or with workers elsewhere, if the environment says so: ``FASTIO_LOAD_PROCESSES`` and the
    other variables of ``python -m benchmarks.load run``.

    :param stop: ends it when it is set
    :param longest: seconds after which it is ended in any case; 0: never
    :param show: is called from a thread, each second, with a line on what was done so far
    :raises LoadFailed: if it could not be done, or was ended
    """
    with Generator(directory, show) as generator:
        return generator.carry_out(plan, stop, longest)


class Generator:
    """A load generator that gets ready, which takes a second or two, while others do; for one plan.

    :param directory: where the records will be
    :param show: as for :func:`carry_out`
    :param environment: wins over this process's
    """

    def __init__(
        self, directory: Path, show: Callable[[str], None] | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self._directory = directory
        self._showing = None
        # Not on the standard error, which is to have nothing but why it has failed.
        if show is None:
            tell = os.open(os.devnull, os.O_WRONLY)
        else:
            lines, tell = os.pipe()
            self._showing = threading.Thread(target=_pass_on, args=[lines, show], daemon=True)
            self._showing.start()
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.load", "run", "-", "--output", str(directory), "--tell", str(tell)],
            cwd=ROOT, text=True, pass_fds=[tell],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **(environment or {})},
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        os.close(tell)

    def carry_out(self, plan: Plan, stop: threading.Event | None = None, longest: float = 0) -> Path:
        """As the function :func:`carry_out`."""
        errors = self._errors(json.dumps(plan.to_dict()), stop, longest)
        status = self._process.returncode
        if status:
            raise LoadFailed(errors.strip() or f"exit status {status} of the load generator")
        return self._directory

    def _errors(self, data: str, stop: threading.Event | None, longest: float) -> str:
        """Give it the plan and wait for its end; returns what it said."""
        deadline = time.monotonic() + longest if longest else float("inf")
        given: str | None = data
        while True:
            try:
                return self._process.communicate(given, timeout=LOOK)[1]
            except subprocess.TimeoutExpired:
                # The rest of it goes on, and is not sent again.
                given = None
            if stop is not None and stop.is_set():
                raise LoadFailed("the load was stopped")
            if time.monotonic() > deadline:
                raise LoadFailed(f"the load generator did not end in {longest:g} s")

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
        # Nothing is shown of it afterwards.
        if self._showing is not None:
            self._showing.join(GRACE)


def _pass_on(lines: int, show: Callable[[str], None]) -> None:
    """Show each line of a pipe, until its end."""
    with open(lines) as file:
        for line in file:
            show(line.strip())
