"""On the reference stacks, each target of a patch has the outcome that was recorded in ``status.json``.

The record was made before the restructuring began. A patch that has been removed since is in :data:`REMOVED`. A stack
is recognised by the versions of everything that fastio reports; on any other stack the test is skipped.
"""

import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from tests.conftest import MONKEY_PATCHED

RECORD: dict[str, dict[str, Any]] = json.loads(pathlib.Path(__file__).with_name("status.json").read_text())
#: Patches of the record that no longer exist.
REMOVED = {
    "fix_closed_stdin", "fix_green_buffering", "fix_input_items", "fix_input_resume", "fix_sheepdog_binary",
    "glanceclient_download", "green_buffers", "green_wsgi_chunked", "image_chunks", "openstackclient_download",
    "store_sheepdog",
}  # fmt: skip
#: Outcomes of the record that have been merged into others since: what the installed release does not need is off.
MERGED = {"not needed": "off"}
#: Targets of the record that its patch no longer changes.
REMOVED_TARGETS = {"glance.image_cache:ImageCache.cache_tee_iter"}

pytestmark = pytest.mark.skipif(MONKEY_PATCHED, reason="`fastio status` runs in a separate process")


@pytest.fixture(scope="module")
def status() -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-m", "fastio", "status", "--json"]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=100).stdout)


def test_outcomes_are_those_of_the_record(status: dict[str, Any]) -> None:
    versions = {name: version for name, version in status["versions"].items() if name != "fastio"}
    matching = [stack for stack in RECORD.values() if versions.items() <= stack["versions"].items()]
    if not matching:
        pytest.skip(f"no stack of the record has {versions}")
    outcomes: dict[str, dict[str, str]] = {}
    for patch in status["patches"]:
        outcomes.setdefault(patch["name"], {})[patch["target"]] = patch["outcome"]
    expected = {
        name: {
            target: MERGED.get(outcome, outcome) for target, outcome in targets.items() if target not in REMOVED_TARGETS
        }
        for name, targets in matching[0]["patches"].items()
        if name not in REMOVED
    }
    assert outcomes == expected


def test_removed_patches_are_gone(status: dict[str, Any]) -> None:
    assert REMOVED.isdisjoint(patch["name"] for patch in status["patches"])
