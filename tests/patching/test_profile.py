"""The profile ``safe``: nothing that changes more than speed is applied, and nothing that remains goes untested."""

import json
from pathlib import Path

import pytest

import fastio
from fastio.patching import registry
from tests.conftest import RunPython, needs_eventlet
from tests.targets import attributes, import_targets, in_effect

TESTS = Path(__file__).parents[1]
MARKED = {patch.name: patch.changes for patch in registry.patches() if patch.changes}


@pytest.fixture(autouse=True)
def imported() -> None:
    import_targets()


def test_patches_that_change_more_than_speed_are_marked() -> None:
    fixes = {name for name in fastio.names() if name.startswith("fix_")}
    assert fixes <= set(MARKED)
    # They are read after a colon, and in a list.
    assert not [text for text in MARKED.values() if text != text.strip() or text.endswith(".") or text[0].isupper()]


def test_the_others_have_tests_against_upstreams_code() -> None:
    """In a file of the patch's name, or in one that several share, whose first line names them."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py")}
    for patch in registry.patches():
        if not patch.changes:
            shared = [text for text in texts.values() if f"``{patch.name}``" in text.partition("\n")[0]]
            found = [texts[f"test_{patch.name}"]] if f"test_{patch.name}" in texts else shared
            assert any("patched" in text for text in found), patch.name


@needs_eventlet
def test_safe_leaves_them_out() -> None:
    before = attributes()
    with fastio.patched(strict=True):
        default = in_effect()
    assert default & set(MARKED)
    with fastio.patched(strict=True, profile="safe") as report:
        assert not {entry.name for entry in report.entries} & set(MARKED)
        assert in_effect() == default - set(MARKED)
        fastio.patch(strict=True, profile="safe", also="fix_green_encoding")
        assert "fix_green_encoding" in in_effect()
        # Patches that are not asked for any more are taken back.
        fastio.patch(strict=True, profile="safe")
        assert in_effect() == default - set(MARKED)
    assert attributes() == before


def test_reports_of_a_profile_import_nothing(run_python: RunPython) -> None:
    """The changes of a patch are read from the patch where that is imported anyway."""
    code = """
import json, sys
import fastio
from fastio.patching import registry
fastio.patch()
loaded = [name for name in sys.modules if name.startswith("fastio.patches")]
found = [{entry.name: entry.found for entry in fastio.status().entries}["fix_wait_poll"]]
registry.load("fix_wait_poll")
found += [{entry.name: entry.found for entry in fastio.status().entries}["fix_wait_poll"]]
print(json.dumps([loaded, found]))
"""
    loaded, found = json.loads(run_python(code, env={"FASTIO_PROFILE": " Safe"}).stdout)
    why = "not in the profile safe of environment FASTIO_PROFILE: "
    assert loaded == [] and found == [why + "it changes more than speed", why + MARKED["fix_wait_poll"]]
