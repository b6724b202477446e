"""fastio's own candidates for upstream: nothing newly fails, and the tests that they bring pass.

In the newest release of each project, so that a candidate that no longer applies there is noticed.
"""

from __future__ import annotations

import re

import pytest

from benchmarks.harness.engine import ROOT
from tests.benchmarks.validate.command import Validate, validate_tests

validate_tests()

PATCHES = sorted((ROOT / "doc" / "source" / "candidates").glob("*.patch"))
SUITES = {
    "eventlet": "conformance-green,eventlet",
    "oslo.concurrency": "conformance-native,conformance-green,oslo-native,oslo-green",
    "glance_store": "conformance-stores-native,conformance-stores-green,glance_store-native,glance_store-green",
}


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_nothing_newly_fails(tmp_path, patch):
    text = patch.read_text()
    project = re.search(r"^Release: (\S+)", text, re.MULTILINE)[1]
    validate = Validate(project, tmp_path)
    done, raw = validate(
        "--candidate", str(patch), "--no-fastio", "--suite", SUITES[project], "--benchmarks", "none"
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    passing = {
        test.rpartition(".")[2]
        for suite in raw["pythons"][0]["suites"]
        for test, outcome in suite["run"]["tests"].items()
        if outcome["outcome"] == "pass"
    }
    brought = set(re.findall(r"^\+ *def (test_\w+)", text, re.MULTILINE))
    assert brought <= passing
