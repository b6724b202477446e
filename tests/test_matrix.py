"""The tables of known and tested releases, and that they are true."""

import importlib.metadata
import json
import pathlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from packaging.requirements import Requirement as PEP508
from packaging.version import Version

from benchmarks.tools import matrix as runner
from benchmarks.tools import pythons
from benchmarks.tools import supported as matrix
from fastio.patching import catalogue, registry

TARGETS = [(patch, target) for patch in registry.patches() for target in patch.targets]


def test_every_target_has_a_row() -> None:
    assert [(row.patch, row.target) for row in matrix.rows()] == [(patch.name, target.key) for patch, target in TARGETS]
    counted = sum(int(cells[1]) for cells in matrix.patches_table().rows)
    assert counted == len(TARGETS)


def test_the_known_releases_are_in_the_ranges() -> None:
    for row, (patch, target) in zip(matrix.rows(), TARGETS, strict=True):
        assert row.known and all(row.known.values())
        requirements = patch.requirements(target)
        assert row.requires == [str(requirement) for requirement in requirements]
        for requirement in requirements:
            for version in row.known.get(requirement.distribution, []):
                assert requirement.accepts(version)


def test_a_release_is_known_if_all_code_is() -> None:
    """It is not if one of the functions that a target relies on is other code, or not there."""
    for row, (_, target) in zip(matrix.rows(), TARGETS, strict=True):
        for name, versions in row.known.items():
            for version in versions:
                python = tuple(map(int, version.split(".")[:2])) if name == catalogue.CPYTHON else None
                for key in target.keys_for(python):
                    tables = catalogue.table()[key].values()
                    releases = {each for hashes in tables for text in hashes.values() for each in text.split(", ")}
                    of_this = {release for release in releases if release.startswith(name + " ")}
                    assert not of_this or f"{name} {version}" in of_this


def test_spans() -> None:
    row = matrix.Row("patch", "module:name", [], {"CPython": ["3.9.1", "3.10.2"], "eventlet": ["0.41.3"], "other": []})
    assert row.spans() == "CPython 3.9.1 to 3.10.2, eventlet 0.41.3, other: none"


def minimum(requirement: registry.Requirement) -> Version:
    return next(Version(each.version) for each in PEP508(str(requirement)).specifier if each.operator == ">=")


#: The oldest releases of PyPI's that Python 3.10 can import, where these are not the oldest ones that fastio is for.
OLDEST = {"eventlet": Version("0.33")}


def test_what_was_tested_is_what_fastio_is_for() -> None:
    """Every Python, the newest release that is known of each distribution, and the oldest series that is accepted."""
    environments = matrix.tested()
    written = {runner.pins_of(environment) for environment in environments}
    assert written <= set(runner.MATRIX)
    if unwritten := [pins.name for pins in runner.MATRIX if pins not in written]:
        pytest.skip(f"not run yet: {', '.join(unwritten)} (tox -e matrix -- --write)")
    classifiers = (pathlib.Path(runner.ROOT) / "setup.cfg").read_text(encoding="utf-8")
    pythons = {pins.python for pins in runner.MATRIX}
    assert {python for python in pythons if f"Programming Language :: Python :: {python}\n" in classifiers} == pythons
    assert pythons == {minor for known in catalogue.table().values() for minor in known} - {catalogue.SOURCE}
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
        for run in (environment.native, environment.monkey_patched):
            assert set(run) == {"passed", "skipped"}
            assert run["passed"] > 0


def test_what_is_known_of_the_oldest_eventlet_that_can_be_imported_is_known_of_ubuntu_s() -> None:
    """PyPI's 0.30.2 cannot be imported, so the tests run with 0.33.0; Ubuntu 22.04 has 0.30.2 with a fix."""

    def known(release: str) -> set[str]:
        sources = {key: ", ".join(prints[catalogue.SOURCE].values()) for key, prints in catalogue.table().items()}
        return {key for key, releases in sources.items() if release in releases.split(", ")}

    assert len(known("eventlet 0.33.0")) > 10
    assert known("eventlet 0.30.2") == known("eventlet 0.33.0")


def passed(pins: runner.Pins, count: int = 1) -> matrix.Environment:
    run = {"passed": count, "skipped": 0}
    versions = dict(zip(matrix.DISTRIBUTIONS, pins.releases, strict=True))
    return matrix.Environment(pins.python + ".7", versions, run, run)


def test_what_ran_replaces_what_was_written() -> None:
    first, second, third = runner.MATRIX[:3]
    before = [passed(first), passed(second), passed(runner.Pins("3.9", first.releases))]
    assert runner.merged(before, {}) == [passed(first), passed(second)]
    after = runner.merged(before, {third: passed(third, 3), second: None, first: passed(first, 2)})
    assert after == [passed(first, 2), passed(third, 3)]


def test_an_environment_belongs_to_its_pins() -> None:
    for pins in runner.MATRIX:
        assert runner.pins_of(passed(pins)) == pins
        assert runner.Pins("3.9", pins.releases) not in runner.MATRIX


def test_the_counts_are_those_of_the_results(tmp_path: pathlib.Path) -> None:
    results = tmp_path / "results.xml"
    results.write_text(
        '<testsuites><testsuite tests="10" failures="1" errors="2" skipped="3"/>'
        '<testsuite tests="2" failures="0" errors="0" skipped="1"/></testsuites>'
    )
    assert runner.counts(results) == {"passed": 5, "skipped": 4}


@pytest.fixture
def fake_runs(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> dict[runner.Pins, matrix.Environment | None]:
    """What ``environments()`` yields, and a file of its own."""
    ran: dict[runner.Pins, matrix.Environment | None] = {}
    monkeypatch.setattr(runner, "environments", lambda *arguments: iter(ran.items()))
    monkeypatch.setattr(runner, "FILE", tmp_path / "tested.json")
    monkeypatch.setattr(runner, "tested", lambda: [passed(runner.MATRIX[0])])
    return ran


def test_the_runner_writes_what_passed(fake_runs: dict[runner.Pins, matrix.Environment | None]) -> None:
    first, second, third = runner.MATRIX[:3]
    fake_runs |= {second: passed(second), first: passed(first, 2)}
    assert runner.main(["--write"]) == 0
    entries = json.loads(runner.FILE.read_text())
    assert [matrix.Environment(**entry) for entry in entries] == [passed(first, 2), passed(second)]
    fake_runs |= {third: None}
    assert runner.main(["--write"]) == 1
    assert len(json.loads(runner.FILE.read_text())) == 2


def test_the_runner_checks_what_is_written(fake_runs: dict[runner.Pins, matrix.Environment | None]) -> None:
    first, second = runner.MATRIX[:2]
    fake_runs |= {first: passed(first)}
    assert runner.main([]) == 0
    fake_runs |= {second: passed(second)}
    assert runner.main([]) == 1
    assert not runner.FILE.exists()


def test_a_python_by_its_path(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Its version says what of the matrix is run in it."""
    ran: list[tuple[Sequence[runner.Pins], Mapping[str, str]]] = []

    def environments(matrix: Any, directory: Any, tests: Any, interpreters: Any) -> Iterator[Any]:
        ran.append((matrix, interpreters))
        return iter(())

    monkeypatch.setattr(runner, "environments", environments)
    assert runner.main(["--python", sys.executable]) == 0
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert ran == [([pins for pins in runner.MATRIX if pins.python == here], {here: sys.executable})]
    for wrong, told in (("3.9", "--python 3.9: not in the matrix"), ("/no/python", "--python /no/python: there is no")):
        with pytest.raises(SystemExit):
            runner.main(["--python", wrong])
        assert told in capsys.readouterr().err


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


def test_this_environment_is_described_by_its_metadata() -> None:
    for name in matrix.DISTRIBUTIONS:
        try:
            importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"{name} is not installed")
    version, found = runner.versions(pathlib.Path(sys.executable))
    assert sys.version.startswith(version)
    assert found == {name: importlib.metadata.version(name) for name in matrix.DISTRIBUTIONS}
