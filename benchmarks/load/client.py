"""Have a load carried out, from any process: Locust patches the one that imports it, so it gets one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
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
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(plan.to_dict(), file)
        file.flush()
        command = [sys.executable, "-m", "benchmarks.load", "run", file.name, "--output", str(directory)]
        done = subprocess.run(
            command, env=environment, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
    if done.returncode:
        raise LoadFailed(done.stderr.strip() or f"exit status {done.returncode} of the load generator")
    return directory

