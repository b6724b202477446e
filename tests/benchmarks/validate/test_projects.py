"""The projects, and what is run for each: suites, benchmarks, and a service's own servers."""

import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness import engine, servers
from benchmarks.suites.glance import bench_glance
from benchmarks.tools import pythons
from benchmarks.tools.pythons import Unavailable
from benchmarks.tools.upstream.sides import Sides
from benchmarks.tools.upstream.terminal import Screen
from benchmarks.validate import __main__ as command
from benchmarks.validate import measurements, projects, suites
from benchmarks.validate.environments import Environment, Variant
from benchmarks.validate.errors import ValidateError
from benchmarks.validate.sandbox import Isolation

ALL = {**projects.PROJECTS, "glance 32": projects.GLANCE.older[1]}
GLANCE_32 = projects.GLANCE.older[1]


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


def test_names():
    for name in ("oslo.concurrency", "oslo_concurrency", "Oslo-Concurrency"):
        assert projects.find(name) is projects.OSLO_CONCURRENCY
    with pytest.raises(ValidateError, match="'evenlet' is not one of eventlet, oslo.concurrency, glance_store"):
        projects.find("evenlet")


def test_choosing():
    assert projects.EVENTLET.choose_suites(["none"]) == []
    assert projects.EVENTLET.choose_suites(["eventlet"]) == ["eventlet"]
    assert projects.EVENTLET.choose_suites([]) == projects.EVENTLET.choose_suites(["all"])
    assert projects.EVENTLET.choose_cases(["none"]) == []
    assert {suite for suite, _ in projects.EVENTLET.choose_cases(["processes"])} == {"processes"}
    ((suite, case),) = projects.EVENTLET.choose_cases(["processes/wsgi-length-64KiB"])
    assert (suite, case.name) == ("processes", "wsgi-length-64KiB")
    with pytest.raises(ValidateError, match="--suite 'glance_store-native': eventlet has conformance-green, eventlet"):
        projects.EVENTLET.choose_suites(["glance_store-native"])
    with pytest.raises(ValidateError, match="--benchmarks 'stores': eventlet has processes, processes/"):
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


def variant(name: str, home: Path = Path("/environments")) -> Variant:
    return Variant(name, Environment(home / name), "33.0.0", None)


def test_each_row_of_stock_is_a_case():
    (download,) = [case for case in bench_glance.CASES if case.name == "glance-33-download"]
    parts = {case.name: case for case in projects.split(download)}
    assert list(parts) == [f"glance-33-download{what}" for what in ("", "-1-requests", "-5-requests", "-20-requests")]
    alone, beside = parts["glance-33-download"], parts["glance-33-download-5-requests"]
    assert (alone.unit, alone.value, alone.parameters["clients"]) == ("MB/s", "seconds", 1)
    assert (beside.unit, beside.value, beside.parameters["clients"]) == ("ms", "p50_ms", 5)
    assert beside.parameters["requests"] and not alone.parameters["requests"]
    (upload,) = [case for case in bench_glance.CASES if case.name == "glance-33-upload"]
    sizes = {case.name: case.parameters["size"] for case in projects.split(upload)}
    assert sizes["glance-33-upload"] == projects.SIZE
    assert sizes["glance-33-upload-20-requests"] == bench_glance.UPLOAD_SIZES[20] < projects.SIZE
    assert "glance-33-upload-chunked" in sizes


def test_every_variant_has_a_server():
    ((suite, case),) = projects.GLANCE.choose_cases(["glance/glance-33-download-5-requests"])
    variants = [variant(name) for name in ("stock", "candidate", "fastio")]
    adapted = measurements.adapt(case, suite, variants, projects.GLANCE.modes)
    assert adapted.name == "glance/glance-33-download-5-requests"
    # The clients run here, whatever the variant.
    rows: Any = adapted.variants
    assert [(row.name, row.title, row.against, row.python) for row in rows] == [
        ("transfer", "native-stock", "", None),
        ("transfer", "native-candidate", "native-stock", None),
        ("transfer", "native-fastio", "native-stock", None),
    ]
    known_by = [engine.Options().parameters(adapted, row)["server"] for row in rows]
    assert known_by == ["", "candidate", "fastio"]
    assert adapted.backend_parameters == {"python": "/environments/stock/bin/python", "fastio": "off"}
    assert adapted.beside == {
        "candidate": ("glance-33", {"python": "/environments/candidate/bin/python", "fastio": "off"}),
        "fastio": ("glance-33", {"python": "/environments/fastio/bin/python", "fastio": "on"}),
    }
    # It is looked for where the variant is, not where the environment variable says.
    assert servers.why_not(adapted.backend, adapted.backend_parameters) == (
        "glance-33: beside python=/environments/stock/bin/python there is no uwsgi"
    )


def test_a_server_keeps_the_parameters_of_its_case():
    ((suite, case),) = projects.GLANCE.choose_cases([f"glance/{bench_glance.SHIPPED}-download"])
    adapted = measurements.adapt(case, suite, [variant("stock"), variant("fastio")], projects.GLANCE.modes)
    for parameters in (adapted.backend_parameters, adapted.beside["fastio"][1]):
        assert (parameters["workers"], parameters["threads"]) == (4, 1)


def test_releases_before_33_have_the_eventlet_server(capsys):
    assert projects.find("glance") is projects.find("glance", "33.1.0") is projects.GLANCE
    assert projects.find("glance", "32.0.0") is GLANCE_32
    assert projects.at_release(GLANCE_32, "32.0.0").requirements[0] == "glance==32.0.0"
    assert "oslo.policy<6" in GLANCE_32.requirements and "uwsgi" in projects.GLANCE.requirements
    assert {case.backend for _, case in GLANCE_32.choose_cases(["all"])} == {"glance-32"}
    assert {case.backend for _, case in projects.GLANCE.choose_cases(["all"])} == {"glance-33"}
    for options in (["--candidate", "32.0.0"], ["--candidate", "33.0.0", "--stock", "32.0.0"]):
        assert command.main(["glance", *options]) == 2
        assert "give it a --stock on the same side of glance 33" in capsys.readouterr().err
    assert command.main(["glance", "--suite", "glance-32-unit"]) == 2
    assert "glance has conformance-glance, glance-33-unit, glance-33-functional" in capsys.readouterr().err


@pytest.fixture
def made(tmp_path):
    """A variant whose packages have these files."""
    for name in (
        "glance/tests/etc/policy", "openstack/tests/unit/object_store/v1/test_obj.py",
        "openstack/tests/unit/compute/v2/test_server.py", "openstack/tests/unit/test_utils.py",
        "openstack/tests/unit/fixtures/image.json",
    ):  # fmt: skip
        file = tmp_path / "stock" / "lib" / "python3.11" / "site-packages" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("own")
    return variant("stock", tmp_path)


def test_suites_are_those_of_the_variant(made, tmp_path):
    suite = suites.suite_for("glance-33-unit", made)
    assert (suite.environment, suite.prelude) == ("", "glance.tests")
    with pytest.raises(Unavailable, match="packaged without its tests' data"):
        suite.find()
    (made.environment.site_packages / "glance" / "tests" / "var").mkdir()
    directory = suite.find()
    assert suite.find() == directory and directory.is_relative_to(tmp_path / "stock")
    assert (directory / "glance" / "tests" / "etc" / "policy").read_text() == "own"
    assert not list(directory.rglob("__init__.py"))
    suite = suites.suite_for("openstacksdk-green", made)
    assert suite.modules == ("openstack.tests.unit.object_store.v1.test_obj", "openstack.tests.unit.test_utils")
    assert (suite.find() / "openstack" / "tests" / "unit" / "fixtures" / "image.json").exists()
    assert suites.suite_for("swiftclient-native", made).find() == made.tests
    suite = suites.suite_for("conformance-glance", made)
    assert (suite.find() / "conformance_glance.py").is_file()
    assert Path(suite.env["FASTIO_BENCHMARK_CACHE"]).is_dir()


def test_a_suite_that_lacks_something_is_a_fault_and_no_end(tmp_path):
    for name in ("stock", "candidate"):
        (tmp_path / name / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    stock, candidate = (
        suites.side(variant(name, tmp_path), 15, "", Isolation()) for name in ("stock", "candidate")
    )  # fmt: skip
    (compared,) = Sides(Screen(), jobs=1).compare(["glance-33-unit"], stock, [candidate])
    assert "packaged without its tests' data" in compared.failures()[0]
