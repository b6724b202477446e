"""The tables of known and tested releases, and that they are true."""

import dataclasses
import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest
from packaging.requirements import Requirement as PEP508
from packaging.version import Version

from benchmarks.tools import matrix as runner
from benchmarks.tools import pythons
from benchmarks.tools import supported as matrix
from fastio.patching import known_code, registry

TARGETS = [(patch, target) for patch in registry.patches() for target in patch.targets]


def test_every_target_has_a_row() -> None:
    counted = sum(int(cells[1]) for cells in matrix.patches_table().rows)
    assert counted == len(TARGETS)


def test_the_known_releases_are_in_the_ranges() -> None:
    """Each that is in the range is known if one of the functions is: of another one it would be left alone."""
    for patch, target in TARGETS:
        known = matrix.known_releases(target)
        for requirement in patch.requirements(target):
            accepted = list(filter(requirement.accepts, known.get(requirement.distribution, [])))
            assert requirement.distribution not in known or accepted


def minimum(requirement: registry.Requirement) -> Version:
    return next(Version(each.version) for each in PEP508(str(requirement)).specifier if each.operator == ">=")


#: The oldest releases of PyPI's that Python 3.10 can import, where these are not the oldest ones that fastio is for.
OLDEST = {"eventlet": Version("0.33")}


def test_what_was_tested_is_what_fastio_is_for() -> None:
    """Every Python, the newest release that is known of each distribution, and the oldest series that is accepted."""
    environments = matrix.tested()
    classifiers = (runner.ROOT / "setup.cfg").read_text(encoding="utf-8")
    pythons = {".".join(environment.python.split(".")[:2]) for environment in environments}
    assert {python for python in pythons if f"Programming Language :: Python :: {python}\n" in classifiers} == pythons
    assert pythons == {version.rpartition(".")[0] for version in matrix.all_releases()["CPython"]}
    newest = {name: versions[-1] for name, versions in matrix.all_releases().items()}
    requirements = {requirement for patch, target in TARGETS for requirement in patch.requirements(target)}
    for name in matrix.DISTRIBUTIONS:
        tested = [environment.versions[name] for environment in environments]
        of_this = [requirement for requirement in requirements if requirement.distribution == name]
        # fastio's own sheepdog driver aside, which older releases than the others'.
        minimums = sorted({OLDEST.get(name, minimum(each)) for each in of_this} - {Version("0.28")})
        assert newest[name] in tested
        assert min(map(Version, tested)).release[:2] == minimums[0].release[:2]


def test_nothing_that_failed_is_listed() -> None:
    for environment in matrix.tested():
        assert {f"{name}=={version}" for name, version in environment.versions.items()} <= {*environment.requirements}
        for run in (environment.native, environment.monkey_patched):
            assert set(run) == {"passed", "skipped"}
            assert run["passed"] > 0


def test_what_is_known_of_the_oldest_eventlet_that_can_be_imported_is_known_of_ubuntu_s() -> None:
    """PyPI's 0.30.2 cannot be imported, so the tests run with 0.33.0; Ubuntu 22.04 has 0.30.2 with a fix."""

    def known(release: str) -> set[str]:
        return {key for key in known_code.table() if release in known_code.releases(key).get("eventlet", ())}

    assert len(known("0.33.0")) > 5
    assert known("0.30.2") == known("0.33.0")


def test_the_counts_are_those_of_the_results(tmp_path: pathlib.Path) -> None:
    results = tmp_path / "results.xml"
    results.write_text('<testsuites><testsuite tests="7" skipped="3"/><testsuite tests="2" skipped="1"/></testsuites>')
    assert runner.counts(results) == {"passed": 5, "skipped": 4}


@pytest.mark.parametrize("status", [0, 1])
def test_what_is_run_and_written(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    """The entries of one Python, by its path, in environments that are made once."""
    entry = matrix.tested()[-1]
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    entry = dataclasses.replace(entry, python=f"{here}.0", without=["tests/no.py"])
    made: list[Any] = []
    ran: list[list[str]] = []

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        ran.append(command)
        if "pytest" in command:
            path = next(word for word in command if word.startswith("--junitxml=")).partition("=")[2]
            pathlib.Path(path).write_text('<testsuite tests="3" skipped="1"/>')
            return subprocess.CompletedProcess(command, status * int(options["env"]["TEST_EVENTLET"]))
        patches = [{"name": "old", "outcome": "unsupported version"}]
        found = [f"{here}.9", entry.versions] if "-c" in command else {"patches": patches}
        return subprocess.CompletedProcess(command, 0, stdout=json.dumps(found))

    def make(base: str, directory: pathlib.Path, needs: list[str]) -> None:
        made.append((base, needs))
        directory.mkdir(parents=True, exist_ok=True)

    monkeypatch.setattr(runner, "tested", lambda: [entry, dataclasses.replace(entry, python="3.9.1")])
    monkeypatch.setattr(runner, "make", make)
    monkeypatch.setattr(runner, "TESTED", tmp_path / "tested.json")
    found = pythons.Python(sys.executable, f"{here}.9", sys.prefix)
    monkeypatch.setattr(pythons, "find", lambda text: found)
    monkeypatch.setattr(runner.subprocess, "run", run)
    for _ in range(2):
        assert runner.main(["--python", sys.executable, "--directory", str(tmp_path), "--write"]) == status
    assert len(made) == 1 and set(entry.requirements) <= set(made[0][1])
    assert all("--deselect=tests/no.py" in command for command in ran if "pytest" in command)
    first, second = json.loads((tmp_path / "tested.json").read_text())
    counts = {"passed": 2, "skipped": 1}
    assert (first["python"], first["native"]) == (f"{here}.9", counts)
    assert first["monkey_patched"] == ({} if status else counts)
    assert second["python"] == "3.9.1"
    with pytest.raises(SystemExit):
        runner.main(["--python", "3.8"])
    assert "--python 3.8: one of " in capsys.readouterr().err


def test_the_newest_micro_release_is_taken(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ("3.99.5", "3.99.18", "3.99.9"):
        python = tmp_path / version / "bin" / "python3.99"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\necho \'["{version}", "/usr"]\'\n')
        python.chmod(0o755)
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "3.12.1"))
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert pythons.find("3.99").version == "3.99.18"
    assert pythons.find("3.99.5").version == "3.99.5"
