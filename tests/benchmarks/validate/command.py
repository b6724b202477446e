"""``fastio validate`` as users start it, in a separate process."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from benchmarks.harness.engine import ROOT
from tests.benchmarks.validate.test_diffs import diff_of

#: No process listens there.
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

    def run(self, status: int, *options: str, network: bool = False) -> dict[str, Any]:
        """Run it to its end, with this exit status; returns the raw data."""
        results = self._directory / f"results-{len(list(self._directory.iterdir()))}"
        done = subprocess.run(
            [sys.executable, "-m", "fastio", "validate", self._project, "--results", str(results), *options],
            cwd=ROOT, env={**os.environ, **({} if network else NO_NETWORK)}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1500,
        )  # fmt: skip
        self.said = done.stdout
        assert done.returncode == status, self.said
        found = list(results.glob("*/raw.json"))
        return json.loads(found[0].read_text()) if found else {}

    def diff(self, name: str, old: str, new: str) -> str:
        """A file with the diff that has ``new`` in the place of ``old`` in a file of the release."""
        before = (self.source / name).read_text()
        assert before.count(old) == 1, f"{name} of this release is another one: write the candidate anew"
        path = self._directory / "candidate.diff"
        path.write_text(diff_of({name: before}, {name: before.replace(old, new)}))
        return str(path)
