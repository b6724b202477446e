"""git, which applies diffs and reads clones."""

import os
import shutil
import subprocess
from pathlib import Path

from .errors import ValidateError

#: What a hook of git's has set would decide on the repository.
_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")


def check(what: str) -> None:
    """:raises ValidateError: if it is not installed"""
    if shutil.which("git") is None:
        raise ValidateError(f"{what} needs git, which is not installed")


def run(directory: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run it in a directory, with these variables of its environment, and messages in English."""
    env = {**os.environ, **variables, "LC_ALL": "C"}
    for variable in _VARIABLES:
        env.pop(variable, None)
    return subprocess.run(
        ["git", *arguments], cwd=directory.resolve(), env=env, stdin=subprocess.DEVNULL, capture_output=True
    )


def said(done: subprocess.CompletedProcess[bytes]) -> str:
    return done.stderr.decode(errors="replace").strip()
