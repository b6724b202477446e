"""What ``python -m benchmarks.tools.newest`` says of releases that nobody has read, and what it takes over."""

from __future__ import annotations

import hashlib
import json
import pathlib
import shutil
import subprocess
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.tools import debian, fingerprints, known, newest
from fastio.patching import catalogue, registry, syntax

CODE = """
def kept(a):
    return a + 1

def changed(a):
    return a + 2

def removed(a):
    return a + 3
"""
WANTED = {"library": ["kept", "changed", "removed"]}


class Library:
    """A library whose releases 1.9 and 1.10 are known, but for ``removed()``, which 1.9 did not have."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.module = root / "library.py"
        self.module.write_text(CODE)
        self.fingerprints = root / "fingerprints.json"

    def examine(self, version: str, **more: Any) -> newest.Finding:
        return newest.examine("library", version, self.root, WANTED, **more)

    def change(self, *changes: tuple[str, str]) -> None:
        text = self.module.read_text()
        for old, new in changes:
            text = text.replace(old, new)
        self.module.write_text(text)


@pytest.fixture
def files(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """Where the tables are, which are empty."""
    monkeypatch.setattr(fingerprints, "TABLE", tmp_path / "fingerprints.json")
    monkeypatch.setattr(fingerprints, "is_wanted", lambda key, release: True)
    monkeypatch.setattr(known, "FILE", tmp_path / "known.json")
    known.texts.cache_clear()

    def table() -> Any:
        return json.loads(fingerprints.TABLE.read_text()) if fingerprints.TABLE.exists() else {}

    monkeypatch.setattr(catalogue, "table", table)
    yield tmp_path
    known.texts.cache_clear()


@pytest.fixture
def library(files: pathlib.Path) -> Library:
    made = Library(files)
    for version, functions in (("1.9", ("kept", "changed")), ("1.10", ("kept", "changed", "removed"))):
        newest.accept([newest.examine("library", version, files, {"library": functions})], WANTED_KEYS)
    return made


WANTED_KEYS = [f"library:{name}" for name in WANTED["library"]]


def keys(new: Any) -> list[str]:
    return [each.key for each in new]


def test_a_known_release(library: Library) -> None:
    finding = library.examine("1.10")
    assert (finding.listed, finding.unknown) == (True, False)
    assert finding.known == WANTED_KEYS


def test_a_new_release_with_the_same_code(library: Library) -> None:
    finding = library.examine("1.11")
    assert (finding.listed, finding.unknown) == (False, False)
    assert "the table does not have this release" in str(finding)
    assert newest.accept([finding], []) == []
    assert library.examine("1.11").listed


def test_new_code_and_code_that_is_gone(library: Library) -> None:
    library.change(("a + 2", "a + 20"), ("removed", "renamed"))
    finding = library.examine("1.11")
    assert finding.unknown
    assert (finding.known, keys(finding.new), finding.gone) == (["library:kept"], ["library:changed"], WANTED_KEYS[2:])
    assert "known: 1, new: 1" in str(finding)
    assert "gone: library:removed" in str(finding)
    # What came with a later release is not gone.
    assert library.examine("1.9").gone == library.examine("1.8").gone == []


def test_one_of_several_functions_of_a_name_is_new(library: Library) -> None:
    """As in subprocess, which has some of its methods for two systems."""
    library.module.write_text(CODE + "if kept(1):\n    def kept(a):\n        return a\n")
    (new,) = library.examine("1.10").new
    assert (new.key, new.difference[-2:]) == ("library:kept", ["-    return a + 1", "+    return a"])


def test_a_module_that_is_gone(library: Library) -> None:
    library.module.unlink()
    assert library.examine("2.0").gone == WANTED_KEYS


# What is new is shown beside what it is nearest to


def test_the_nearest_release(library: Library) -> None:
    """It is not always the last one."""
    library.change(("return a + 2", "b = a\n    return b + 2"))
    assert newest.accept([library.examine("1.11")], ["library:changed"]) == []
    library.module.write_text(CODE.replace("a + 2", "a + 2 # faster"))
    assert library.examine("1.12").new == []
    library.module.write_text(CODE.replace("a + 2", "a + 4"))
    (new,) = library.examine("1.12").new
    assert new.nearest == "library 1.9"
    assert new.difference == [
        "--- library:changed (library 1.9)", "+++ library:changed (library 1.12)", "@@ -1,2 +1,2 @@",
        " def changed(a):", "-    return a + 2", "+    return a + 4",
    ]  # fmt: skip
    (row,) = newest.table([new]).rows
    assert row[:4] == ["library:changed", "library 1.12", "library 1.9", "2"]


def test_a_long_difference_is_cut(library: Library) -> None:
    library.change(("a + 2", "(\n" + "".join(f"        {number} +\n" for number in range(100)) + "    a)"))
    shown = newest.differences(library.examine("1.11").new).splitlines()
    assert len(shown) == newest.LONGEST + 1 and shown[-1].endswith(" more lines")


def text_of(key: str, release: str) -> str:
    """The function as that release has it."""
    texts = [text for several in known.texts()[key].values() for text in several]
    return next(text for text in texts if release in releases_of(key, text))


def releases_of(key: str, text: str) -> list[str]:
    """Those that have this text, as the table says."""
    return catalogue.table()[key][catalogue.SOURCE][digest_of(key, text)].split(", ")


def digest_of(key: str, text: str) -> str:
    name = registry.last_name(key)
    (source,) = (source for each, source in syntax.functions(text, key, {name}) if each == name)
    defaults = type(source.defaults)() if key in fingerprints.without_defaults() else source.defaults
    return syntax.fingerprint(source.tree, defaults)


@pytest.fixture
def texts() -> dict[str, str]:
    """``eventlet.green.os:write()`` in three releases."""
    versions = ("0.34.3", "0.35.2", "0.37.0")
    return {version: text_of("eventlet.green.os:write", f"eventlet {version}") for version in versions}


def test_real_releases(texts: dict[str, str], files: pathlib.Path) -> None:
    """``write()`` of eventlet 0.35.2, as if nobody had read it, and as if somebody had."""
    key = "eventlet.green.os:write"
    module = files / "eventlet" / "green" / "os.py"
    module.parent.mkdir(parents=True)

    def examine(version: str) -> newest.Finding:
        module.write_text(texts[version])
        return newest.examine("eventlet", version, files, {"eventlet.green.os": ["write"]})

    for version in ("0.34.3", "0.37.0"):
        newest.accept([examine(version)], [key])
    (new,) = examine("0.35.2").new
    assert new.nearest == "eventlet 0.34.3"
    assert "-            if get_errno(e) != errno.EAGAIN:" in new.difference
    assert "+            if get_errno(e) not in [errno.EAGAIN, errno.EPIPE]:" in new.difference
    assert "fix_green_epipe" in new.reason
    assert newest.accept([examine("0.35.2")], []) == [new]
    assert newest.accept([examine("0.35.2")], [key]) == []
    assert examine("0.35.2").known == [key]


def test_the_texts_are_those_of_the_table() -> None:
    """All of them: the writer of the table writes them as well."""
    for key, table in catalogue.table().items():
        texts = [(release, text) for release, several in known.texts()[key].items() for text in several]
        assert {digest_of(key, text) for _, text in texts} == table[catalogue.SOURCE].keys(), key
        assert [release for release, text in texts if release not in releases_of(key, text)] == [], key
    assert known.texts().keys() == catalogue.table().keys()


# What is taken over


def test_what_has_to_be_read_is_refused(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the release is taken over, and one function is none of another's business."""
    library.change(("a + 1", "a + 10"), ("a + 2", "a + 20"))
    monkeypatch.setattr(newest, "why_to_read", lambda function: "replaced" * function.key.endswith("kept"))
    finding = library.examine("1.11")
    assert [(each.key, each.reason) for each in finding.new] == [(WANTED_KEYS[0], "replaced"), (WANTED_KEYS[1], "")]
    assert keys(newest.accept([finding], [])) == WANTED_KEYS[:1]
    assert keys(library.examine("1.11").new) == WANTED_KEYS[:1]
    releases = {key: table[catalogue.SOURCE].values() for key, table in catalogue.table().items()}
    assert [any("library 1.11" in each for each in releases[key]) for key in WANTED_KEYS] == [False, True, True]
    kept = [list(known.texts()[key]) for key in WANTED_KEYS]
    assert kept == [["library 1.9"], ["library 1.9", "library 1.11"], ["library 1.10"]]


CACHE = "glance.image_cache:ImageCache.cache_tee_iter"


@pytest.fixture
def cached() -> list[str]:
    return [text_of(CACHE, f"glance {version}") for version in ("30.0.0", "31.0.0")]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("", "", ""),
        ("self.driver.open_for_write(", "self.open(", "has no "),
        ("yield chunk", "yield chunk, 1", "has '(yield (chunk, 1))', not "),
    ],
    ids=["as it is", "another call", "another result"],
)
def test_a_contract(cached: list[str], files: pathlib.Path, old: str, new: str, told: str) -> None:
    """A function of glance 31.0.0, as if nobody had read it: glance_cache only wraps it."""
    module = files / "glance" / "image_cache.py"
    module.parent.mkdir()
    before, text = cached
    assert before != text and old in text

    def examine(version: str, text: str) -> newest.Finding:
        module.write_text(f"class ImageCache:\n{textwrap.indent(text, '    ')}")
        return newest.examine("glance", version, files, {"glance.image_cache": ["ImageCache.cache_tee_iter"]})

    newest.accept([examine("30.0.0", before)], [CACHE])
    finding = examine("31.0.0", text.replace(old, new) if old else text)
    (found,) = finding.new
    assert found.reason.startswith(told) and found.reason.endswith("(glance_cache)" if told else "")
    assert newest.accept([finding], []) == ([found] if told else [])


def test_other_bytecode_of_known_source(library: Library) -> None:
    table = json.loads(fingerprints.TABLE.read_text())
    table[WANTED_KEYS[0]][catalogue.PYTHON] = {"0123456789abcdef": "library 1.10"}
    fingerprints.TABLE.write_text(json.dumps(table))
    finding = library.examine("1.10")
    assert (finding.recompiled, finding.unknown) == (WANTED_KEYS[:1], False)
    assert newest.accept([finding], []) == []
    assert not library.examine("1.10").recompiled


def test_a_revision_of_a_distribution(library: Library) -> None:
    """It has its name in the table only if it has code of its own."""
    version = debian.plain("1.10-3+deb13u1")
    assert newest.accept([library.examine(version, packaged="Debian trixie")], []) == []
    assert version not in fingerprints.TABLE.read_text()
    library.change(("a + 2", "a + 20"))
    assert newest.accept([library.examine(version, packaged="Debian trixie")], ["library:changed"]) == []
    assert library.examine(version).listed
    assert catalogue.ordered(["1.11", version, "1.10"]) == ["1.10", version, "1.11"]


def test_versions_that_the_patches_are_not_for() -> None:
    assert newest.refusals("eventlet", "0.41.3") == []
    (text,) = newest.refusals("eventlet", "99.0")
    assert text.startswith(registry.libraries()["eventlet"])
    for patch in registry.patches():
        if all(any(each.distribution == "eventlet" for each in patch.requirements(target)) for target in patch.targets):
            assert patch.name in text
    # Of what is older nobody expects that the patches will be for it.
    assert newest.refusals("eventlet", "0.9") == []


def test_the_command(
    library: Library, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setattr(newest, "why_to_read", lambda function: "somebody relies on its code")
    version = "1.10"
    monkeypatch.setattr(newest, "installed", lambda: iter([library.examine(version)]))
    assert newest.main([]) == 0
    assert not summary.exists()
    library.change(("a + 2", "a + 20"))
    version = "1.11"
    assert newest.main([]) == newest.main(["--accept"]) == 1
    told = capsys.readouterr().out
    assert "no: somebody relies on its code" in told and "+    return a + 20" in told
    assert "taken over: 0 of 1 functions" in told
    assert "| library:changed | library 1.11 |" in summary.read_text()
    with pytest.raises(SystemExit):
        newest.main(["--accept", "library:kept"])
    assert "--accept: not new: library:kept" in capsys.readouterr().err
    assert newest.main(["--accept", "library:changed"]) == newest.main([]) == 0


def test_all_that_is_installed_is_looked_at() -> None:
    findings = list(newest.installed())
    assert findings[0].distribution == "CPython"
    assert {each.distribution for each in findings[1:]} <= set(fingerprints.distributions().values())
    for finding in findings:
        wanted = fingerprints.wanted_of(finding.distribution, finding.version)
        assert bool(finding.known or finding.new) == bool(wanted)


# Debian


@pytest.mark.parametrize(
    ("version", "plain"),
    [
        ("3.13.5-2+deb13u1", "3.13.5+2.deb13u1"), ("2:30.0.0-3", "30.0.0+3"), ("5.7.0", "5.7.0"),
        ("2.32.3+dfsg-5", "2.32.3+dfsg.5"), ("5.0.0~rc1-1", "5.0.0rc1+1"),
    ],
)  # fmt: skip
def test_versions_of_debian(version: str, plain: str) -> None:
    assert debian.plain(version) == plain
    assert newest.Version(plain) >= newest.Version(plain.partition("+")[0])


@pytest.fixture
def mirror(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A mirror of a suite with real packages: two of Python's library, and one of eventlet."""
    if missing := [name for name in ("apt-get", "dpkg-deb") if shutil.which(name) is None]:
        pytest.skip(f"not here: {', '.join(missing)}")
    wait = text_of("subprocess:Popen._wait", "CPython 3.12.7")
    subprocess_module = f"class Popen:\n{textwrap.indent(wait, '    ')}"
    os_module = text_of("eventlet.green.os:write", "eventlet 0.37.0").replace("EPIPE", "EBADF")
    packages = {
        ("libpython3.12-minimal", "3.12.99-1"): ("usr/lib/python3.12/subprocess.py", subprocess_module),
        ("libpython3.12-stdlib", "3.12.99-1"): ("usr/lib/python3.12/_pyio.py", ""),
        ("python3-eventlet", "0.41.2-4+deb99u1"): (f"{debian.LIBRARIES}/eventlet/green/os.py", os_module),
    }
    index = ""
    for (name, version), (path, text) in packages.items():
        tree = tmp_path / name
        for place, content in (
            (
                "DEBIAN/control",
                f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: x\nDescription: x\n",
            ),
            (path, text),
        ):
            (tree / place).parent.mkdir(parents=True, exist_ok=True)
            (tree / place).write_text(content)
        file = tmp_path / "mirror" / f"{name}.deb"
        file.parent.mkdir(exist_ok=True)
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, file], check=True, stdout=subprocess.DEVNULL)
        data = file.read_bytes()
        index += (tree / "DEBIAN/control").read_text()
        index += f"Filename: {file.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n\n"
    architecture = subprocess.check_output(["dpkg", "--print-architecture"], text=True).strip()
    suite = tmp_path / "mirror" / "dists" / "sid"
    (suite / f"main/binary-{architecture}").mkdir(parents=True)
    (suite / f"main/binary-{architecture}/Packages").write_text(index)
    digest = hashlib.sha256(index.encode()).hexdigest()
    (suite / "Release").write_text(
        f"Suite: sid\nCodename: sid\nArchitectures: {architecture}\nComponents: main\n"
        f"SHA256:\n {digest} {len(index)} main/binary-{architecture}/Packages\n"
    )
    yield tmp_path / "mirror"


def test_what_a_suite_packages(mirror: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """With apt and dpkg themselves. A micro release whose code is known, and one changed function of eventlet."""
    suite = debian.Suite("sid", tmp_path / "apt", f"file:{mirror}", "trusted=yes")
    findings = {finding.distribution: finding for finding in newest.packaged(suite)}
    assert list(findings) == ["CPython", "eventlet"]
    assert findings["CPython"].release == "CPython 3.12.99+1"
    assert findings["CPython"].known == ["subprocess:Popen._wait"]
    assert not findings["CPython"].new
    eventlet = findings["eventlet"]
    text = text_of("eventlet.green.os:write", "eventlet 0.37.0")
    nearest = next(release for release, several in known.texts()["eventlet.green.os:write"].items() if text in several)
    assert eventlet.release == "eventlet 0.41.2+4.deb99u1"
    assert [(each.key, each.nearest) for each in eventlet.new] == [("eventlet.green.os:write", nearest)]
    assert "(Debian sid): functions that are known: 0, new: 1" in str(eventlet)


def test_a_suite_that_is_not_there(
    mirror: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = debian.Suite("none", tmp_path / "apt", f"file:{mirror}", "trusted=yes")
    with pytest.raises(
        debian.DebianError, match=r"^Debian none: apt-get -q update: exit status 100\nE: Failed to fetch"
    ):
        suite.update()
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert newest.main(["--debian", "trixie"]) == 2
    assert "Debian trixie: not here: apt-get, dpkg-deb" in capsys.readouterr().err
