"""What making an environment of its own takes, for benchmarks of programs that do not run in this one."""

from __future__ import annotations

import subprocess


class SetupError(Exception):
    """The environment can not be made here."""


def run(command: list[str]) -> None:
    """Run a step, and show it.

    :raises SetupError: if it fails
    """
    print("+", " ".join(command), flush=True)
    try:
        subprocess.run(command, check=True)
    except subprocess.CalledProcessError as error:
        raise SetupError(str(error)) from error
