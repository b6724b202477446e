"""``python -m benchmarks.tools.fingerprints``: which code of a release is new, and what is added to the table."""

from __future__ import annotations

import json
import pathlib
import subprocess
from typing import Any

import pytest

from benchmarks.tools import fingerprints
from fastio.patching import known_code, registry
from fastio.patching.known_code import KNOWN, Uses

CODE = """
def kept(a):
    return a + 1

def changed(a):
    return a + 2

def removed(a):
    return a + 3
"""
NAMES = ("kept", "changed", "removed")
KEYS = [f"library:{name}" for name in NAMES]


class Library:
    """A library whose releases 1.9 and 1.10 are known, but for ``removed()``, which only has to be there."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.module = root / "library.py"
        self.module.write_text(CODE)
        for version in ("1.9", "1.10"):
            # Its releases on PyPI.
            unpacked = root / "cache" / f"library-{version}" / "unpacked"
            unpacked.mkdir(parents=True)
            (unpacked / "library.py").write_text(CODE)

    def examine(self, version: str) -> fingerprints.Finding:
        return fingerprints.examine("library", version, self.root)

    def change(self, *changes: tuple[str, str]) -> None:
        text = self.module.read_text()
        for old, new in changes:
            text = text.replace(old, new)
        self.module.write_text(text)


@pytest.fixture
def library(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    patch = registry.Patch("patches.library.one", "", ())
    uses = dict.fromkeys(KEYS[:2], KNOWN) | {KEYS[2]: Uses("a")}
    requirement = registry.Requirement("library >= 1, < 2")
    declared = [(key, use, requirement, patch) for key, use in uses.items()]
    monkeypatch.setattr(fingerprints, "declared", lambda python=None: iter(declared))
    monkeypatch.setattr(fingerprints, "TABLE", tmp_path / "fingerprints.json")
    monkeypatch.setenv("FINGERPRINT_CACHE", str(tmp_path / "cache"))
    fingerprints.wanted_of.cache_clear()

    def table() -> Any:
        return json.loads(fingerprints.TABLE.read_text()) if fingerprints.TABLE.exists() else {}

    monkeypatch.setattr(known_code, "table", table)
    made = Library(tmp_path)
    for version in ("1.9", "1.10"):
        fingerprints.accept([made.examine(version)], KEYS)
    return made


def keys(new: Any) -> list[str]:
    return [each.key for each in new]


def test_a_known_release(library: Library) -> None:
    finding = library.examine("1.10")
    assert (finding.listed, finding.unknown, list(finding.known)) == (True, False, KEYS[:2])


def test_a_new_release_with_the_same_code(library: Library) -> None:
    finding = library.examine("1.11")
    assert (finding.listed, finding.unknown) == (False, False)
    assert "the table does not have this release" in str(finding)
    fingerprints.accept([finding], [])
    assert library.examine("1.11").listed


def test_new_code_and_code_that_is_gone(library: Library) -> None:
    library.change(("a + 2", "a + 20"), ("removed", "renamed"))
    finding = library.examine("1.11")
    assert (list(finding.known), keys(finding.new), finding.lacking) == (KEYS[:1], KEYS[1:2], {KEYS[2]: "is gone"})
    assert "known: 1, new: 1" in str(finding) and "library:removed: is gone" in str(finding)
    (new,) = finding.new
    assert new.before == "library 1.10"
    assert new.difference == [
        "--- library:changed (library 1.10)", "+++ library:changed (library 1.11)", "@@ -1,2 +1,2 @@",
        " def changed(a):", "-    return a + 2", "+    return a + 20",
    ]  # fmt: skip
    library.change(("renamed(a)", "removed(b)"))
    assert library.examine("1.11").lacking == {KEYS[2]: "takes (b), not (a) (one)"}
    # A module that a release has not got is not needed there.
    library.module.unlink()
    assert not library.examine("1.11").lacking
    assert library.examine("2.0").refused == []


def test_one_of_several_functions_of_a_name_is_new(library: Library) -> None:
    """As in subprocess, which has some of its methods for two systems."""
    library.module.write_text(CODE + "if kept(1):\n    def kept(a):\n        return a\n")
    found = library.examine("1.10")
    (new,) = found.new
    assert (new.key, new.difference[-2:]) == ("library:kept", ["-    return a + 1", "+    return a"])
    library.change(("return a + 1", "return a + 10"))
    found = library.examine("1.11")
    assert keys(found.new) == ["library:kept"] * 2
    fingerprints.accept([found], ["library:kept"])
    assert not library.examine("1.11").unknown


@pytest.mark.parametrize("release", ["CPython 3.99.0", "library 9.9"])
def test_a_release_that_cannot_be_had(library: Library, release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole of the function is shown."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(fingerprints, "UPSTREAM", "file:///no/such/{}/{}")
    assert fingerprints.of_release("library:kept", release) == []


def test_unread_code_is_refused(library: Library) -> None:
    """The rest of the release is taken over."""
    library.change(("a + 1", "a + 10"), ("a + 2", "a + 2 + 0"))
    for read, left in ((KEYS[1:2], KEYS[:1]), (KEYS[:1], [])):
        fingerprints.accept([library.examine("1.11")], read)
        assert keys(library.examine("1.11").new) == left
    assert [known_code.releases(key)["library"] for key in KEYS[:2]] == [["1.9", "1.10", "1.11"]] * 2


def test_a_revision_of_a_distribution(library: Library) -> None:
    """It has its name in the table only if its code differs."""
    version = fingerprints.plain("1.10-3+deb13u1")
    fingerprints.accept([library.examine(version)], [])
    assert version not in fingerprints.TABLE.read_text()
    library.change(("a + 2", "a + 20"))
    fingerprints.accept([library.examine(version)], ["library:changed"])
    assert library.examine(version).listed
    assert known_code.ordered(["1.11", version, "1.10"]) == ["1.10", version, "1.11"]


@pytest.mark.parametrize(
    ("version", "plain"),
    [
        ("3.13.5-2+deb13u1", "3.13.5+2.deb13u1"), ("2:30.0.0-3", "30.0.0+3"), ("5.7.0", "5.7.0"),
        ("2.32.3+dfsg-5", "2.32.3+dfsg.5"), ("5.0.0~rc1-1", "5.0.0rc1+1"),
    ],
)  # fmt: skip
def test_versions_of_debian(version: str, plain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fingerprints.plain(version) == plain
    assert fingerprints.Version(plain) >= fingerprints.Version(plain.partition("+")[0])
    done = subprocess.CompletedProcess([], 0, stdout=version)
    monkeypatch.setattr(fingerprints.subprocess, "run", lambda *arguments, **options: done)
    packages = pathlib.Path("/usr/lib/python3/dist-packages")
    assert fingerprints.revision(packages, "python3-eventlet", "1.0") == plain
    assert fingerprints.revision(pathlib.Path("/opt/lib"), "python3-eventlet", "1.0") == "1.0"


def test_versions_that_the_patches_are_not_for() -> None:
    assert fingerprints.refusals("eventlet", "0.41.3") == []
    (text,) = fingerprints.refusals("eventlet", "99.0")
    assert text.startswith(registry.libraries()["eventlet"])
    # The patches are not expected to support older ones.
    assert fingerprints.refusals("eventlet", "0.9") == []


def test_new_code_fails_the_command_and_is_summarized(
    library: Library, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    version = "1.10"
    monkeypatch.setattr(fingerprints, "installed", lambda: iter([library.examine(version)]))
    assert fingerprints.main([]) == 0
    assert not summary.exists()
    library.change(("a + 2", "a + 20"))
    version = "1.11"
    assert fingerprints.main([]) == fingerprints.main(["--accept"]) == 1
    told = capsys.readouterr().out
    assert "new: library:changed, compared with library 1.10: 2 lines differ" in told
    assert "+    return a + 20" in told and "+    return a + 20" in summary.read_text()
    with pytest.raises(SystemExit):
        fingerprints.main(["--accept", "library:kept"])
    assert "--accept: not new: library:kept" in capsys.readouterr().err
    assert fingerprints.main(["--accept", "library:changed"]) == fingerprints.main([]) == 0
