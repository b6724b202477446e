"""The platforms of the documentation: what is kept of ``fastio status``, and how Debian's suites are looked at.

CI runs :mod:`benchmarks.tools.debian` with a real suite.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.tools import debian, platforms
from benchmarks.tools.platforms import Platform
from benchmarks.tools.upstream.sources import Unavailable
from fastio.report import Outcome

DEBIAN = Platform("Debian 12", "2022.2 Zed", "packages", {})


def status(**outcomes: str) -> dict[str, Any]:
    """What ``fastio status --json`` says, by the names of patches."""
    patches = [
        {"name": name, "target": f"library:{name}", "outcome": each, "found": "1.0", "in_effect": each == "applied"}
        for name, each in outcomes.items()
    ]
    return {"versions": {"CPython": "3.11.2", "glance": "25.1.0", "eventlet": "absent"}, "patches": patches}


def test_what_is_in_effect_and_why_something_is_not() -> None:
    found = DEBIAN.with_status(status(
        one="applied", two="applied", old="unsupported version", gone="absent", quiet="off", new="changed upstream code"
    ))  # fmt: skip
    effect, reasons = platforms.tables([found])
    assert effect.rows == [["2022.2 Zed", "Debian 12", "packages", "3.11.2", "25.1.0", "–", "–", "2 of 4"]]
    assert reasons.rows == [
        ["2022.2 Zed", "Debian 12", "old (unsupported version: 1.0); new (changed upstream code: 1.0)", "gone"]
    ]
    assert found.unsupported() == ["old"]
    assert found.text().startswith("Debian 12, 2022.2 Zed: 2 of 4 in effect\n  CPython 3.11.2\n")


def test_every_outcome_is_told() -> None:
    """Either it is in effect, or off on purpose, or in one of the two columns."""
    for outcome in Outcome:
        (row,) = platforms.tables([DEBIAN.with_status(status(it=outcome.value))])[1].rows
        assert any("it" in cell for cell in row[2:]) or outcome in (Outcome.APPLIED, Outcome.OFF)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what is kept."""
    copy = tmp_path / "platforms.json"
    copy.write_bytes(platforms.FILE.read_bytes())
    monkeypatch.setattr(platforms, "FILE", copy)
    return copy


def test_an_environment(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made once, of that Python and those releases, and its status is kept."""
    made: list[tuple[str, list[str]]] = []

    def make(base: str, directory: Path, needs: list[str]) -> None:
        made.append((base, needs))
        directory.mkdir(parents=True)

    monkeypatch.setattr(platforms.pythons, "find", lambda text: SimpleNamespace(path=f"/python{text}"))
    monkeypatch.setattr(platforms, "make", make)
    monkeypatch.setattr(
        platforms.subprocess, "run",
        lambda command, **_: subprocess.CompletedProcess(command, 1, stdout=json.dumps(status(one="applied"))),
    )  # fmt: skip
    before = platforms.kept()
    for _ in range(2):
        assert platforms.main(["--directory", str(tmp_path), "--write", "2024.1"]) == 0
    ((base, needs),) = made
    assert base == "/python3.12" and {"glance==28.1.0", "eventlet==0.35.2"} <= set(needs)
    (after,) = (each for each in platforms.kept() if each not in before)
    assert (after.name, after.applied, after.others) == ("Ubuntu 24.04", 1, [])
    assert after.sources and after.requirements and len(platforms.kept()) == len(before)


def test_a_python_that_is_not_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def missing(text: str) -> None:
        raise Unavailable(f"no {text}")

    monkeypatch.setattr(platforms.pythons, "find", missing)
    assert platforms.main(["2026.1", "--directory", "/nowhere"]) == 0
    assert capsys.readouterr().err == "Ubuntu 26.04: no 3.14\n"
    with pytest.raises(SystemExit):
        platforms.main(["1999.1"])
    assert "1999.1: one of 2022.1, 2023.1" in capsys.readouterr().err


def test_what_is_kept() -> None:
    """All but 2 % is in effect on Debian 13 and sid, all but 10 % on Debian 12, and the others say where from."""
    found = {each.name: each for each in platforms.kept()}
    assert set(debian.SUITES.values()) == {name for name, each in found.items() if each.of == "packages"}
    for name, goal in (("Debian 12", 0.9), ("Debian 13", 0.98), ("Debian sid", 0.98)):
        applied, _, all_ = found[name].in_effect().partition(" of ")
        assert int(applied) / int(all_) >= goal
    assert all(each.sources and each.requirements for each in found.values() if each.of == "PyPI")


# Debian


@pytest.mark.parametrize(
    ("user", "found", "said"),
    [(1000, "/x", "only root can make"), (0, None, "not here: debootstrap, unshare (apt-get install")],
)
def test_where_no_suite_can_be_had(
    user: int, found: str | None, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)
    monkeypatch.setattr("shutil.which", lambda name: found)
    assert debian.main([]) == 0
    assert capsys.readouterr().out.startswith(f"debian: skipped: {said}")


def test_the_project_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout, project = tmp_path / "checkout", tmp_path / "project"
    kept = {"setup.py", ".ci/run", "doc/source/a.rst", "doc/results/a.json", "fastio/build.py"}
    for name in (
        *kept, ".git/config", ".venv311/a", ".tox/a", "fastio/__pycache__/a", "a.egg-info/a", "fastio/a.pyc",
        "doc/build/a", "doc/source/generated/a.rst", "results/a.json", "../project/old.py",
    ):  # fmt: skip
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).touch()
    shutil.copy(debian.ROOT / ".gitignore", checkout)
    monkeypatch.setattr(debian, "ROOT", checkout)
    debian.copy_project(project)
    copied = {str(path.relative_to(project)) for path in project.rglob("*") if path.is_file()}
    assert copied == {*kept, ".gitignore"}


def test_what_is_run(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The packages, their code, what is in effect, and the tests in both modes; a suite that fails is named."""
    commands = []

    def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        words = " ".join(command)
        commands.append(words)
        failed = "tests/io" in words and "TEST_EVENTLET=1" in words
        found = json.dumps(status(one="applied", old="unsupported version")) if "--json" in words else "E: no"
        return subprocess.CompletedProcess(command, int(failed or "debootstrap" in words), stdout=found)

    monkeypatch.setattr(debian.subprocess, "run", run)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/sbin/{name}")
    for directory in ("usr/sbin", "etc/apt"):
        (tmp_path / "bookworm" / directory).mkdir(parents=True)
    (tmp_path / "bookworm/usr/sbin/policy-rc.d").touch()
    words = ["--directory", str(tmp_path), "--suites", "bookworm", "trixie", "--write", "tests/io"]
    assert debian.main(words) == 1
    told = capsys.readouterr().err
    assert "trixie: debootstrap" in told and "exit status 1\nE: no" in told
    assert "not passed: bookworm: tests/io (TEST_EVENTLET=1); trixie: cannot be made" in told
    assert any("install -y" in each and all(name in each for name in debian.PACKAGES) for each in commands)
    assert any("benchmarks.tools.fingerprints" in each for each in commands)
    tests = [each for each in commands if " -m pytest " in each]
    assert len(tests) == 2 and all("TEST_DISABLED=old " in each for each in tests), "the tests patch strictly"
    sources = (tmp_path / "bookworm/etc/apt/sources.list").read_text()
    assert sources.splitlines()[1:] == [
        "deb http://deb.debian.org/debian bookworm-updates main",
        "deb http://deb.debian.org/debian-security bookworm-security main",
    ]
    (kept,) = (each for each in platforms.kept() if each.name == "Debian 12")
    assert kept.applied == 1
