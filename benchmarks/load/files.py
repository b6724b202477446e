"""Common parts of plans, runs, workloads and samples: JSON that names its format and version, and clocks."""

import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.load import Wrong

#: How often another machine is asked for its time; the fastest answer counts.
QUESTIONS = 5


def check(data: Any, what: str, kind: str, version: int) -> None:
    """Raise :class:`~benchmarks.load.Wrong` unless the data have this format and version.

    :param what: they are, in words
    """
    if not isinstance(data, Mapping) or data.get("format") != kind:
        raise Wrong(f"no {what} (no format {kind!r} in it)")
    if data.get("version") != version:
        raise Wrong(f"{what}: version {data.get('version')!r}, but this program knows version {version}")


def read(path: Path, what: str, kind: str, version: int) -> dict[str, Any]:
    """The data in a file; raises :class:`~benchmarks.load.Wrong` if they are not there or something else."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        check(data, what, kind, version)
    except (OSError, ValueError) as problem:
        raise Wrong(f"{path}: {problem if isinstance(problem, Wrong) else f'no {what}: {problem}'}") from problem
    return data


def write(path: Path, data: Mapping[str, Any]) -> None:
    """Write the file so that others see all of it or nothing."""
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    partial.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    os.replace(partial, path)


def clock_ahead(ask: Callable[[], float]) -> tuple[float, float]:
    """How far the clock that ``ask()`` reads is ahead of this one, and the error of that, as NTP has it."""
    found = []
    for _ in range(QUESTIONS):
        asked = time.time()
        answer = ask()
        half = (time.time() - asked) / 2
        found.append((half, answer - asked - half))
    error, ahead = min(found)
    return ahead, error
