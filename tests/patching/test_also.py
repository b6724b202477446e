"""Patches outside of the default: nobody gets them who has not asked, by name or with the setting ``also``."""

import json
import subprocess
from collections.abc import Callable

import pytest

import fastio
from fastio.patching import registry
from fastio.report import Outcome
from tests.conftest import needs_eventlet
from tests.targets import attributes, import_targets

RunPython = Callable[..., subprocess.CompletedProcess[str]]

#: Declared to be outside of the default here: one of eventlet's, which is there wherever this runs.
OUTSIDE = ("fix_green_encoding",)

pytestmark = needs_eventlet


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    import_targets()
    monkeypatch.setattr(registry, "TABLE", [each._replace(default=each.name not in OUTSIDE) for each in registry.TABLE])


def in_effect() -> set[str]:
    return {entry.name for entry in fastio.status().entries if entry.in_effect}


def test_they_are_left_out_and_the_report_says_how_to_get_them(run_python: RunPython) -> None:
    with fastio.patched(strict=True) as report:
        assert not {entry.name for entry in report.entries} & set(OUTSIDE)
        assert in_effect() and not in_effect() & set(OUTSIDE)
    # In a process in which they have never been applied.
    code = f"""
import eventlet.green.subprocess, fastio
from fastio.patching import registry
registry.TABLE = [each._replace(default=each.name not in {OUTSIDE}) for each in registry.TABLE]
fastio.patch()
print(fastio.status().to_json())
"""
    entries = json.loads(run_python(code, options=("-W", "ignore")).stdout)["patches"]
    found = {entry["name"]: (entry["outcome"], entry["found"]) for entry in entries if entry["name"] in OUTSIDE}
    assert found == {name: ("off", f"not in the default; ask for it with also={name}") for name in OUTSIDE}


@pytest.mark.parametrize("name", OUTSIDE)
def test_naming_one_applies_it(name: str) -> None:
    before = attributes()
    with fastio.patched(name, strict=True):
        assert in_effect() == {name}
        # Other calls, without names, do not take it back, nor does a setting that asked for it as well.
        for also in ((), name, ()):
            fastio.patch(strict=True, also=also)
            assert name in in_effect()
        fastio.unpatch()
        # Once it was taken back the name is forgotten.
        fastio.patch(strict=True)
        assert name not in in_effect()
        fastio.unpatch()
    assert attributes() == before


def test_what_is_not_asked_for_any_more_is_taken_back() -> None:
    before = attributes()
    fastio.patch(strict=True, also=OUTSIDE)
    assert set(OUTSIDE) <= in_effect()
    report = fastio.patch(strict=True)
    assert {entry.outcome for entry in report.entries if entry.name in OUTSIDE} == {Outcome.OFF}
    assert not in_effect() & set(OUTSIDE)
    fastio.unpatch()
    assert attributes() == before
