"""Finds the interpreters that a user names: ``3.12``, or a path."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tools.upstream.sources import Unavailable

OLDEST = (3, 10)


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
    for candidate in _candidates(text):
        found = _ask(candidate)
        if found is not None and (_is_path(text) or not text or _matches(found.version, text)):
            if tuple(map(int, found.version.split(".")[:2])) < OLDEST:
                raise Unavailable(f"--python {text}: it is Python {found.version}, and fastio needs 3.10 or newer")
            return found
    raise Unavailable(f"--python {text}: there is no such Python on the path or beside {sys.base_prefix}")


def _candidates(text: str) -> list[str]:
    if not text:
        return [sys.executable]
    if _is_path(text):
        return [text]
    command = "python" + minor(text)
    # As pyenv keeps them, each in a directory of its own; of several micro releases the newest comes first.
    beside = sorted(Path(sys.base_prefix).parent.glob(f"{text}*/bin/{command}"), key=_numbers, reverse=True)
    on_path = shutil.which(command)
    return [sys.executable, *([on_path] if on_path else []), *map(str, beside)]


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
