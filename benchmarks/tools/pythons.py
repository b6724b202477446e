"""Finds the interpreters that a user names: ``3.12``, or a path.

A version is looked for in what the variable ``BENCHMARK_PYTHONS`` names (interpreters and directories, with colons
between them), on the path, beside the running Python, and where pyenv keeps its own.
``python -m benchmarks.tools.pythons 3.10 3.13`` prints the paths of those that are here.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

OLDEST = (3, 10)
NAMED = "BENCHMARK_PYTHONS"


class Unavailable(Exception):
    """A Python, or something else that a suite or a candidate needs, is missing; the message says what."""


@dataclass(frozen=True)
class Python:
    """An interpreter."""

    path: str
    #: as in ``3.11.7``
    version: str
    #: of the installation: two of the same version may differ
    prefix: str


def find(text: str) -> Python:
    """The interpreter that a version or a path names; this one for an empty text.

    :raises Unavailable: if there is none, or it is too old for fastio
    """
    for candidate in candidates(text):
        found = _ask(candidate)
        if found is not None and (_is_path(text) or not text or _matches(found.version, text)):
            if tuple(map(int, found.version.split(".")[:2])) < OLDEST:
                raise Unavailable(f"--python {text}: it is Python {found.version}, and fastio needs 3.10 or newer")
            return found
    raise Unavailable(
        f"--python {text}: there is no such Python on the path, beside {sys.base_prefix}, in pyenv or in {NAMED}"
    )


def here(versions: Iterable[str]) -> dict[str, Python]:
    """Return the installed ones of ``versions``, with their interpreters."""
    found = {}
    for version in versions:
        with contextlib.suppress(Unavailable):
            found[version] = find(version)
    return found


def candidates(text: str) -> list[str]:
    """Where the interpreter may be; what is there may be another one, or not run, as a shim of pyenv's.

    :raises Unavailable: if the variable names what does not exist
    """
    if not text:
        return [sys.executable]
    if _is_path(text):
        return [text]
    command = "python" + minor(text)
    paths = [Path(each) for each in os.environ.get(NAMED, "").split(os.pathsep) if each]
    for each in paths:
        if not each.exists():
            raise Unavailable(f"{NAMED}: {each} does not exist; an interpreter or a directory with some is needed")
    named = [path for each in paths if (path := each / command if each.is_dir() else each).exists()]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    # Each is in a separate directory; of several micro releases the newest comes first.
    kept = {path for root in (Path(sys.base_prefix).parent, pyenv) for path in root.glob(f"{text}*/bin/{command}")}
    on_path = shutil.which(command)
    beside = sorted(kept, key=_numbers, reverse=True)
    return [sys.executable, *map(str, named), *([on_path] if on_path else []), *map(str, beside)]


def minor(version: str) -> str:
    """``3.11`` of ``3.11.7``."""
    return ".".join(version.split(".")[:2])


def _is_path(text: str) -> bool:
    return "/" in text


def _numbers(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path.parts[-3])]


def _matches(version: str, asked: str) -> bool:
    return version == asked or version.startswith(asked + ".")


def _ask(path: str) -> Python | None:
    code = "import json, platform, sys; print(json.dumps([platform.python_version(), sys.base_prefix]))"
    try:
        done = subprocess.run(
            [path, "-I", "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
        )
        return Python(path, *json.loads(done.stdout)) if done.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def main(arguments: Sequence[str] | None = None) -> int:
    for found in here(sys.argv[1:] if arguments is None else arguments).values():
        print(found.path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
