"""Have a load carried out, from any process: Locust patches the one that imports it, so it gets one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.load.plan import Plan

ROOT = Path(__file__).resolve().parent.parent.parent


class LoadFailed(RuntimeError):
    """The load was not carried out; the message is what the generator said."""


def carry_out(plan: Plan, directory: Path) -> Path:
    """Carry out a plan; its records are then in ``directory``, which is made.

    With worker processes, or with workers elsewhere, if the environment says so: ``FASTIO_LOAD_PROCESSES`` and the
    other variables of ``python -m benchmarks.load run``.

    :raises LoadFailed: if it could not be done
    """
    with Generator(directory) as generator:
        return generator.carry_out(plan)


class Generator:
    """A load generator that gets ready, which takes a second or two, while others do; for one plan.

    :param directory: where the records will be
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.load", "run", "-", "--output", str(directory)], cwd=ROOT, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip

    def carry_out(self, plan: Plan) -> Path:
        """As the function :func:`carry_out`."""
        _, errors = self._process.communicate(json.dumps(plan.to_dict()))
        status = self._process.returncode
        if status:
            raise LoadFailed(errors.strip() or f"exit status {status} of the load generator")
        return self._directory

    def __enter__(self) -> Generator:
        return self

    def __exit__(self, *_: object) -> None:
        """End it, if it has not been used or what it did was interrupted."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.communicate(timeout=15)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.communicate()
