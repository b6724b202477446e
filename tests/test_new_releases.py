"""``python -m benchmarks.tools.fingerprints``: which code of a release is new, and what is added to the table."""

from __future__ import annotations

import json
import pathlib
import subprocess
import textwrap
from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks.tools import fingerprints
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
KEYS = [f"library:{name}" for name in WANTED["library"]]


class Library:
    """A library whose releases 1.9 and 1.10 are known, but for ``removed()``, which 1.9 did not have."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.module = root / "library.py"
        self.module.write_text(CODE)
        for version in ("1.9", "1.10"):
            # What PyPI has of it.
            unpacked = root / "cache" / f"library-{version}" / "unpacked"
            unpacked.mkdir(parents=True)
            (unpacked / "library.py").write_text(CODE)

    def examine(self, version: str, wanted: dict[str, Sequence[str]] | None = None) -> fingerprints.Finding:
        return fingerprints.examine("library", version, self.root, wanted or WANTED)

    def change(self, *changes: tuple[str, str]) -> None:
        text = self.module.read_text()
        for old, new in changes:
            text = text.replace(old, new)
        self.module.write_text(text)


@pytest.fixture
def files(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Where the table is, which is empty."""
    monkeypatch.setattr(fingerprints, "TABLE", tmp_path / "fingerprints.json")
    monkeypatch.setattr(fingerprints, "is_wanted", lambda key, release: True)
    monkeypatch.setenv("FINGERPRINT_CACHE", str(tmp_path / "cache"))
    fingerprints.fetched.cache_clear()

    def table() -> Any:
        return json.loads(fingerprints.TABLE.read_text()) if fingerprints.TABLE.exists() else {}

    monkeypatch.setattr(catalogue, "table", table)
    return tmp_path


@pytest.fixture
def library(files: pathlib.Path) -> Library:
    made = Library(files)
    for version, names in (("1.9", ("kept", "changed")), ("1.10", ("kept", "changed", "removed"))):
        assert fingerprints.accept([made.examine(version, {"library": names})], KEYS) == []
    return made


def keys(new: Any) -> list[str]:
    return [each.key for each in new]


def test_a_known_release(library: Library) -> None:
    finding = library.examine("1.10")
    assert (finding.listed, finding.unknown, finding.known) == (True, False, KEYS)


def test_a_new_release_with_the_same_code(library: Library) -> None:
    finding = library.examine("1.11")
    assert (finding.listed, finding.unknown) == (False, False)
    assert "the table does not have this release" in str(finding)
    assert fingerprints.accept([finding], []) == []
    assert library.examine("1.11").listed


def test_new_code_and_code_that_is_gone(library: Library) -> None:
    library.change(("a + 2", "a + 20"), ("removed", "renamed"))
    finding = library.examine("1.11")
    assert (finding.known, keys(finding.new), finding.gone) == (KEYS[:1], KEYS[1:2], KEYS[2:])
    assert "known: 1, new: 1" in str(finding) and "gone: library:removed" in str(finding)
    (new,) = finding.new
    assert (new.before, new.changed) == ("library 1.10", 2)
    assert new.difference == [
        "--- library:changed (library 1.10)", "+++ library:changed (library 1.11)", "@@ -1,2 +1,2 @@",
        " def changed(a):", "-    return a + 2", "+    return a + 20",
    ]  # fmt: skip
    # What came with a later release is not gone.
    assert library.examine("1.9").gone == library.examine("1.8").gone == []
    library.module.unlink()
    assert library.examine("2.0").gone == KEYS


def test_one_of_several_functions_of_a_name_is_new(library: Library) -> None:
    """As in subprocess, which has some of its methods for two systems."""
    library.module.write_text(CODE + "if kept(1):\n    def kept(a):\n        return a\n")
    (new,) = library.examine("1.10").new
    assert (new.key, new.difference[-2:]) == ("library:kept", ["-    return a + 1", "+    return a"])


def test_a_long_difference_is_cut(library: Library) -> None:
    library.change(("a + 2", "(\n" + "".join(f"        {number} +\n" for number in range(100)) + "    a)"))
    shown = fingerprints.differences(library.examine("1.11").new).splitlines()
    assert len(shown) == fingerprints.LONGEST + 1 and shown[-1].endswith(" more lines")


@pytest.mark.parametrize("release", ["CPython 3.99.0", "library 9.9"])
def test_a_release_that_cannot_be_had(library: Library, release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole of the function is shown."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(fingerprints, "UPSTREAM", "file:///no/such/{}/{}")
    assert fingerprints.of_release("library:kept", release) == []


def test_what_has_to_be_read_is_refused(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the release is taken over, and one function is none of another's business."""
    library.change(("a + 1", "a + 10"), ("a + 2", "a + 20"))
    monkeypatch.setattr(fingerprints, "why_to_read", lambda function: "replaced" * function.key.endswith("kept"))
    finding = library.examine("1.11")
    assert [(each.key, each.reason) for each in finding.new] == [(KEYS[0], "replaced"), (KEYS[1], "")]
    assert keys(fingerprints.accept([finding], [])) == KEYS[:1]
    assert keys(library.examine("1.11").new) == KEYS[:1]
    known = {key: table[catalogue.SOURCE].values() for key, table in catalogue.table().items()}
    assert [any("library 1.11" in each for each in known[key]) for key in KEYS] == [False, True, True]
    assert fingerprints.accept([finding], KEYS[:1]) == library.examine("1.11").new == []


KEY = "glanceclient.common.utils:serious_integrity_iter"


def test_a_contract(files: pathlib.Path) -> None:
    """A function that is only wrapped may change where nobody relies on it."""
    module = files / "glanceclient" / "common" / "utils.py"
    module.parent.mkdir(parents=True)
    (contract,) = {
        target.contract for patch in registry.patches() for target in patch.targets if KEY in target.keys_for(None)
    }
    stub = textwrap.dedent(contract).replace("_\n", "x\n").replace("(_", "(x")

    def why(text: str) -> str:
        module.write_text(text)
        found = fingerprints.functions(files, {"glanceclient.common.utils": ["serious_integrity_iter"]})
        return "".join(map(fingerprints.why_to_read, found))

    assert why(stub) == why(stub + "\n    LOG.info('another line')\n") == ""
    assert why(stub.replace("update(chunk)", "update(other)")).endswith("(glanceclient_hashing)")


def test_other_bytecode_of_known_source(library: Library) -> None:
    before = fingerprints.TABLE.read_text()
    table = json.loads(before)
    table[KEYS[0]][catalogue.PYTHON] = {"0123456789abcdef": "library 1.10"}
    fingerprints.TABLE.write_text(json.dumps(table))
    assert fingerprints.accept([library.examine("1.10")], []) == []
    assert catalogue.table()[KEYS[0]][catalogue.PYTHON].keys() > {"0123456789abcdef"}


def test_a_revision_of_a_distribution(library: Library) -> None:
    """It has its name in the table only if it has code of its own."""
    version = fingerprints.plain("1.10-3+deb13u1")
    assert fingerprints.accept([library.examine(version)], []) == []
    assert version not in fingerprints.TABLE.read_text()
    library.change(("a + 2", "a + 20"))
    assert fingerprints.accept([library.examine(version)], ["library:changed"]) == []
    assert library.examine(version).listed
    assert catalogue.ordered(["1.11", version, "1.10"]) == ["1.10", version, "1.11"]


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
    # Of what is older nobody expects that the patches will be for it.
    assert fingerprints.refusals("eventlet", "0.9") == []


def test_the_command(
    library: Library, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setattr(fingerprints, "why_to_read", lambda function: "somebody relies on its code")
    version = "1.10"
    monkeypatch.setattr(fingerprints, "installed", lambda: iter([library.examine(version)]))
    assert fingerprints.main([]) == 0
    assert not summary.exists()
    library.change(("a + 2", "a + 20"))
    version = "1.11"
    assert fingerprints.main([]) == fingerprints.main(["--accept"]) == 1
    told = capsys.readouterr().out
    assert "no: somebody relies on its code" in told and "+    return a + 20" in told
    assert "taken over: 0 of 1 functions" in told
    assert "| library:changed | library 1.11 |" in summary.read_text()
    with pytest.raises(SystemExit):
        fingerprints.main(["--accept", "library:kept"])
    assert "--accept: not new: library:kept" in capsys.readouterr().err
    assert fingerprints.main(["--accept", "library:changed"]) == fingerprints.main([]) == 0


def test_all_that_is_installed_is_looked_at() -> None:
    findings = list(fingerprints.installed())
    names = [each.release.rpartition(" ")[0] for each in findings]
    assert names[0] == "CPython" and set(names[1:]) <= set(fingerprints.distributions().values())
    assert findings[0].known
