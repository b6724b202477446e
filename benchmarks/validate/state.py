"""What a validation has done so far, on disk, so that an interrupted one goes on where it was."""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness.engine import ROOT
from benchmarks.tools.upstream.sides import Kept

_FINISHED = "finished.json"


class State(Kept):
    """A directory of JSON files."""

    def __init__(self, directory: Path, fresh: bool = False) -> None:
        """
        :param fresh: forget what an interrupted validation has left; what a finished one has left is always forgotten
        """
        self._directory = directory
        if fresh or (directory / _FINISHED).exists():
            shutil.rmtree(directory, ignore_errors=True)
        #: whether an interrupted validation is gone on with
        self.resumed = directory.is_dir() and any(directory.rglob("*.json"))
        directory.mkdir(parents=True, exist_ok=True)

    def path(self, name: str) -> Path:
        return self._directory / f"{name}.json"

    def load(self, name: str) -> Any:
        try:
            return json.loads(self.path(name).read_text())
        except FileNotFoundError:
            return None

    def save(self, name: str, data: Any) -> None:
        """Save plain data; whoever reads the file finds all of it."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{os.getpid()}")
        partial.write_text(json.dumps(data, indent=1) + "\n")
        os.replace(partial, path)

    def finish(self) -> None:
        self.save(_FINISHED.removesuffix(".json"), True)


def key(settings: Mapping[str, Any]) -> str:
    """What tells one validation from others: all that decides on its outcome, this checkout's code included."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    for part in ("fastio", "benchmarks"):
        for file in sorted((ROOT / part).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:10]
