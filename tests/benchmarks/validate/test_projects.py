"""The projects, and what can be chosen for each."""

import sys
from pathlib import Path

import pytest

from benchmarks.tools import pythons
from benchmarks.tools.upstream.sources import Unavailable
from benchmarks.validate import projects, suites
from benchmarks.validate.errors import ValidateError

ALL = {**projects.PROJECTS, "glance 32": projects.GLANCE.older[1]}


@pytest.mark.parametrize("project", ALL.values(), ids=ALL)
def test_all_that_a_project_names_is_there(project):
    assert [suites.known(name).name for name in project.suites] == list(project.suites)
    names = [f"{suite}/{case.name}" for suite, case in project.choose_cases([])]
    assert names == list(project.cases)
    everything = project.choose_cases(["all"])
    assert len(everything) >= len(names)
    for _, case in everything:
        rows = {variant.name for variant in case.all_variants()}
        own = project.service and case.backend == project.service
        assert own or any({f"{mode}-stock", f"{mode}-fastio"} <= rows for mode in project.modes)


def test_a_client_is_measured_by_its_own_cases():
    for project in (projects.OPENSTACKSDK, projects.SWIFTCLIENT):
        assert [(project.package,)] == [case.needs for _, case in project.choose_cases(["all"])]


@pytest.mark.parametrize("name", ["oslo.concurrency", "oslo_concurrency", "Oslo-Concurrency"])
def test_a_name_however_it_is_written(name):
    assert projects.find(name) is projects.OSLO_CONCURRENCY


def test_an_unknown_project():
    with pytest.raises(ValidateError, match="'evenlet' is not one of eventlet, oslo.concurrency, glance_store"):
        projects.find("evenlet")


def test_choosing():
    assert projects.EVENTLET.choose_suites(["none"]) == []
    assert projects.EVENTLET.choose_suites(["eventlet"]) == ["eventlet"]
    assert projects.EVENTLET.choose_suites([]) == projects.EVENTLET.choose_suites(["all"])
    assert projects.EVENTLET.choose_cases(["none"]) == []
    assert {suite for suite, _ in projects.EVENTLET.choose_cases(["wsgi"])} == {"wsgi"}
    ((suite, case),) = projects.EVENTLET.choose_cases(["wsgi/length-64KiB"])
    assert (suite, case.name) == ("wsgi", "length-64KiB")
    with pytest.raises(ValidateError, match="--suite 'glance_store-native': eventlet has conformance-green, eventlet"):
        projects.EVENTLET.choose_suites(["glance_store-native"])
    with pytest.raises(ValidateError, match="--benchmarks 'stores': eventlet has communicate, input"):
        projects.EVENTLET.choose_cases(["stores"])


def test_the_release_replaces_the_requirement_of_the_same_project():
    assert projects.at_release(projects.EVENTLET, "0.40").requirements[:2] == ("eventlet==0.40", "oslo.concurrency")
    assert projects.at_release(projects.OSLO_CONCURRENCY, "").requirements[:2] == ("oslo.concurrency", "eventlet")
    assert projects.at_release(projects.GLANCE_STORE, "5.7.0").requirements[0] == (
        "glance_store[cinder,s3,swift,vmware]==5.7.0"
    )


def test_pythons():
    here = pythons.find("")
    assert here.version == ".".join(map(str, sys.version_info[:3]))
    assert pythons.find(here.version) == here
    assert pythons.find(sys.executable) == here
    for path in Path(sys.base_prefix).parent.glob("3.1?.*/bin/python"):
        assert pythons.find(path.parents[1].name).version == path.parents[1].name
    for text in ("3.99", "/no/such/python"):
        with pytest.raises(Unavailable, match="no such Python"):
            pythons.find(text)


def test_where_pythons_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """In pyenv's directory, where the newest that runs is taken, and before it in what a variable names."""

    def place(path: Path, prints: str) -> Path:
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\n{prints}\n")
        path.chmod(0o755)
        return path

    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.delenv(pythons.NAMED, raising=False)
    place(tmp_path / "versions/3.98.11/bin/python3.98", "exit 127")
    kept = [
        place(tmp_path / f"versions/{version}/bin/python3.98", f'echo \'["{version}", "/"]\'')
        for version in ("3.98.9", "3.98.10")
    ]
    assert pythons.find("3.98").path == str(kept[1])
    assert pythons.find("3.98.9").path == str(kept[0])
    monkeypatch.setenv(pythons.NAMED, f"{tmp_path}:{kept[0].parent}")
    assert list(pythons.here(["3.98", "3.99"])) == ["3.98"]
    assert pythons.main(["3.98", "3.99"]) == 0
    assert capsys.readouterr().out == f"{kept[0]}\n"
    monkeypatch.setenv(pythons.NAMED, str(tmp_path / "none"))
    with pytest.raises(Unavailable, match="BENCHMARK_PYTHONS: .*/none does not exist"):
        pythons.find("3.98")
