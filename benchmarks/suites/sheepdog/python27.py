"""An environment as services had it in 2016: Python 2.7, eventlet 0.17.4, oslo.concurrency 3.7.1.

``python -m benchmarks.suites.sheepdog.python27 DIRECTORY`` makes it, where there is a ``python2.7``; the variable
``BENCHMARK_PYTHON27`` then tells the sheepdog case which interpreter to run its rows of 2016 with.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.environments import SetupError, run
from benchmarks.tools import pythons
from fastio import terminal

#: What glance ran on in the spring of 2016; pip of that Python chooses the rest.
REQUIREMENTS = ("eventlet==0.17.4", "oslo.concurrency==3.7.1")


def set_up(directory: Path) -> Path:
    """Make the environment in ``directory`` unless it is there; returns its interpreter.

    :raises SetupError: if it cannot be made here
    """
    python = directory / "bin" / "python"
    if _works(python):
        return python
    interpreter = _interpreter()
    if interpreter is None:
        raise SetupError("there is no python2.7 that runs, on PATH or where pyenv keeps them: no rows of 2016")
    # virtualenv gave up Python 2.7 in 20.22.
    run([sys.executable, "-m", "virtualenv", "--quiet", "--python", interpreter, str(directory)])
    run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *REQUIREMENTS])
    if not _works(python):
        raise SetupError(f"{python} cannot import what it was given")
    return python


def _interpreter() -> str | None:
    """A Python 2.7."""
    command = ["-c", "import sys; sys.exit(sys.version_info[:2] != (2, 7))"]
    for candidate in pythons.candidates("2.7"):
        if subprocess.run([candidate, *command], stderr=subprocess.DEVNULL).returncode == 0:
            return candidate
    return None


def _works(python: Path) -> bool:
    if not python.exists():
        return False
    code = "import sys, eventlet, oslo_concurrency.processutils; sys.exit(sys.version_info[:2] != (2, 7))"
    return subprocess.run([str(python), "-c", code], stderr=subprocess.DEVNULL).returncode == 0


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.suites.sheepdog.python27", description="Make an environment of 2016."
    )
    parser.add_argument("directory", type=Path)
    chosen = parser.parse_args(arguments)
    try:
        print(set_up(chosen.directory))
    except SetupError as error:
        # Not a failure: the sheepdog case goes on without these rows, and says so.
        print(f"skipped: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
