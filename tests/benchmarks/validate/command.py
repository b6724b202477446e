"""``fastio validate`` as users start it, in a process of its own."""

import difflib
import json
import os
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from benchmarks.harness.engine import ROOT

#: Nobody listens there.
NO_NETWORK = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9", "PIP_NO_INDEX": "1"}


class Validate:
    """Runs ``fastio validate PROJECT`` and reads what it has written; stock is there once this is."""

    def __init__(self, project: str, directory: Path) -> None:
        self._project = project
        self._directory = directory
        self.said = ""
        raw = self.run(0, "--suite", "none", "--benchmarks", "none", network=True)
        #: of stock
        self.version = raw["variants"][0]["version"]
        #: the release's source tree
        self.source = ROOT / "build" / "validate" / "sources" / f"{project}-{self.version}"
        if project == "cpython":
            self.source = directory
            (directory / "Lib").symlink_to(sysconfig.get_path("stdlib"))

    def start(self, results: Path, *options: str, network: bool = False) -> subprocess.Popen[str]:
        """Start it, so that it can be interrupted, also where the tests run in the background."""
        places = ["--results", str(results)]
        return subprocess.Popen(
            [sys.executable, "-m", "fastio", "validate", self._project, *places, *options],
            cwd=ROOT, env={**os.environ, **({} if network else NO_NETWORK)}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip

    def run(self, status: int, *options: str, network: bool = False) -> dict[str, Any]:
        """Run it to its end, with this exit status; returns the raw data."""
        results = self._directory / f"results-{len(list(self._directory.iterdir()))}"
        process = self.start(results, *options, network=network)
        self.said, _ = process.communicate(timeout=1500)
        assert process.returncode == status, self.said
        found = list(results.glob("*/raw.json"))
        return json.loads(found[0].read_text()) if found else {}

    def changed(self, name: str, old: str, new: str) -> str:
        """A file of the release with ``new`` in the place of ``old``."""
        before = (self.source / name).read_text()
        assert before.count(old) == 1, f"{name} of this release is another one: write the candidate anew"
        return before.replace(old, new)

    def diff(self, name: str, old: str, new: str) -> str:
        """A file with the diff of that."""
        before, after = (self.source / name).read_text(), self.changed(name, old, new)
        lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{name}", f"b/{name}")
        path = self._directory / "candidate.diff"
        path.write_text("".join(lines))
        return str(path)
