"""What ``python -m benchmarks.tools.newest`` says of releases that nobody has read."""

from __future__ import annotations

import pathlib

import pytest

from benchmarks.tools import fingerprints, newest
from fastio.patching import catalogue, registry

CODE = """
def kept(a):
    return a + 1

def changed(a):
    return a + 2

def removed(a):
    return a + 3
"""
WANTED = {"library": ["kept", "changed", "removed"]}


@pytest.fixture
def root(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A library in whose release 1.10 everything is known; 1.9 is known as well, and did not have all of it."""
    (tmp_path / "library.py").write_text(CODE)
    table: dict[str, dict[str, dict[str, str]]] = {}
    for key, kind, value in fingerprints.hashes(tmp_path, WANTED):
        releases = "library 1.10" if key.endswith("removed") else "library 1.9, library 1.10"
        table.setdefault(key, {}).setdefault(kind, {})[value] = releases
    monkeypatch.setattr(catalogue, "table", lambda: table)
    return tmp_path


def test_a_known_release(root: pathlib.Path) -> None:
    finding = newest.examine("library", "1.10", root, WANTED)
    assert (finding.listed, finding.unknown) == (True, False)
    assert finding.known == ["library:kept", "library:changed", "library:removed"]


def test_a_new_release_with_the_same_code(root: pathlib.Path) -> None:
    finding = newest.examine("library", "1.11", root, WANTED)
    assert (finding.listed, finding.unknown) == (False, False)
    assert "the table does not have this release" in str(finding)


def test_new_code_and_code_that_is_gone(root: pathlib.Path) -> None:
    (root / "library.py").write_text(CODE.replace("a + 2", "a + 20").replace("removed", "renamed"))
    finding = newest.examine("library", "1.11", root, WANTED)
    assert finding.unknown
    assert (finding.known, finding.new, finding.gone) == (["library:kept"], ["library:changed"], ["library:removed"])
    assert "new: library:changed" in str(finding)
    assert "gone: library:removed" in str(finding)


def test_one_of_several_functions_of_a_name_is_new(root: pathlib.Path) -> None:
    """As in subprocess, which has some of its methods for two systems."""
    (root / "library.py").write_text(CODE + "if kept(1):\n    def kept(a):\n        return a\n")
    assert newest.examine("library", "1.10", root, WANTED).new == ["library:kept"]


def test_a_module_that_is_gone(root: pathlib.Path) -> None:
    (root / "library.py").unlink()
    assert newest.examine("library", "2.0", root, WANTED).gone == ["library:kept", "library:changed", "library:removed"]


def test_versions_that_the_patches_are_not_for() -> None:
    assert newest.refusals("eventlet", "0.41.3") == []
    (text,) = newest.refusals("eventlet", "99.0")
    assert text.startswith("eventlet >= 0.34.3, < ")
    for patch in registry.patches():
        if all(any(each.distribution == "eventlet" for each in patch.requirements(target)) for target in patch.targets):
            assert patch.name in text


def test_the_exit_status(
    root: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def findings(version: str) -> list[newest.Finding]:
        return [newest.examine("library", version, root, WANTED)]

    monkeypatch.setattr(newest, "findings", lambda: findings("1.10"))
    assert newest.main() == 0
    (root / "library.py").write_text(CODE.replace("a + 2", "a + 20"))
    monkeypatch.setattr(newest, "findings", lambda: findings("1.11"))
    assert newest.main() == 1
    assert "to be read: library 1.11" in capsys.readouterr().out


def test_all_that_is_installed_is_looked_at() -> None:
    found = [finding.distribution for finding in newest.findings()]
    assert found[0] == "CPython"
    assert set(found[1:]) <= set(fingerprints.distributions().values())
    for finding in newest.findings():
        wanted = fingerprints.wanted_of(finding.distribution, finding.version)
        assert bool(finding.known or finding.new) == bool(wanted)
