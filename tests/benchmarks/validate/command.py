"""``fastio validate`` as users start it, in a process of its own."""

from __future__ import annotations

import difflib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.harness.engine import ROOT

#: Nobody listens there.
NO_NETWORK = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9", "PIP_NO_INDEX": "1"}


def validate_tests() -> None:
    """Skip the module that calls this: its tests take minutes each, and the first time they need a network."""
    if not os.environ.get("VALIDATE_TESTS"):
        pytest.skip("runs in tox -e validate-tests", allow_module_level=True)


class Validate:
    """Runs ``fastio validate PROJECT`` and reads what it has written; stock is there once this is."""

    def __init__(self, project: str, directory: Path) -> None:
        self._project = project
        self._directory = directory
        self._made = 0
        done, raw = self("--suite", "none", "--benchmarks", "none", network=True)
        assert done.returncode == 0, done.stdout + done.stderr
        #: of stock
        self.version = raw["pythons"][0]["variants"][0]["version"]

    def __call__(self, *options: str, network: bool = False) -> tuple[subprocess.CompletedProcess[str], dict]:
        results = self.results()
        done = subprocess.run(
            self.command(results, *options), cwd=ROOT, env=self.environment(network), capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=1500,
        )  # fmt: skip
        found = list(results.glob("*/raw.json"))
        return done, json.loads(found[0].read_text()) if found else {}

    def start(self, results: Path, *options: str) -> subprocess.Popen[str]:
        """Start it, so that it can be interrupted, also where the tests run in the background."""
        return subprocess.Popen(
            self.command(results, *options), cwd=ROOT, env=self.environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip

    def results(self) -> Path:
        """A directory that no run has used."""
        self._made += 1
        return self._directory / f"results-{self._made}"

    def command(self, results: Path, *options: str) -> list[str]:
        places = ["--plain", "--results", str(results)]
        return [sys.executable, "-m", "fastio", "validate", self._project, *places, *options]

    @staticmethod
    def environment(network: bool = False) -> dict[str, str]:
        return {**os.environ, **({} if network else NO_NETWORK)}

    @property
    def source(self) -> Path:
        """The release's source tree."""
        return ROOT / "build" / "validate" / "sources" / f"{self._project}-{self.version}"

    def diff(self, name: str, old: str, new: str) -> str:
        """A file with the diff that replaces ``old`` by ``new`` in a file of the release."""
        lines = difflib.unified_diff(
            (self.source / name).read_text().splitlines(True), self.changed(name, old, new).splitlines(True),
            f"a/{name}", f"b/{name}",
        )  # fmt: skip
        path = self._directory / "candidate.diff"
        path.write_text("".join(lines))
        return str(path)

    def changed(self, name: str, old: str, new: str) -> str:
        """A file of the release with ``new`` in the place of ``old``."""
        before = (self.source / name).read_text()
        assert before.count(old) == 1, f"{name} of this release is another one: write the candidate anew"
        return before.replace(old, new)
