"""Makes separate environments, for benchmarks of programs that do not run in this one."""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path


class SetupError(Exception):
    """The environment cannot be made here."""


def run(command: list[str]) -> None:
    """Run a step, and show it.

    :raises SetupError: if it fails
    """
    print("+", " ".join(command), flush=True)
    try:
        subprocess.run(command, check=True)
    except subprocess.CalledProcessError as error:
        raise SetupError(str(error)) from error


def make(base: str, directory: Path, requirements: Iterable[str]) -> None:
    """Make an environment of the interpreter ``base`` with what pip is given, in place of what is in ``directory``.

    :raises SetupError: if it cannot be made here
    """
    if directory.exists():
        shutil.rmtree(directory)
    run([base, "-m", "venv", str(directory)])
    # Compiling all that is installed takes as long as installing it, and most of it is never imported.
    options = ("--quiet", "--disable-pip-version-check", "--no-compile")
    run([str(directory / "bin" / "python"), "-m", "pip", "install", *options, *requirements])
