"""The benchmarks of a service, and what else is its own: a release that runs in another way, data of its tests."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness import engine, servers
from benchmarks.suites.glance import bench_glance
from benchmarks.tools.upstream.sides import Sides
from benchmarks.tools.upstream.sources import Unavailable
from benchmarks.tools.upstream.terminal import Screen
from benchmarks.validate import __main__ as command
from benchmarks.validate import measurements, projects, suites
from benchmarks.validate.environments import Environment, Variant
from benchmarks.validate.sandbox import Isolation

GLANCE_32 = projects.GLANCE.older[1]


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


def test_the_data_of_its_tests_are_those_of_the_variant(tmp_path):
    made = variant("stock", tmp_path)
    package = tmp_path / "stock" / "lib" / "python3.11" / "site-packages" / "glance"
    (package / "tests" / "etc").mkdir(parents=True)
    suite = suites.suite_for("glance-33-unit", made)
    with pytest.raises(Unavailable, match="packaged without its tests' data"):
        suite.find()
    (package / "tests" / "var").mkdir()
    (package / "tests" / "var" / "certificate").write_text("own")
    directory = suite.find()
    assert suite.find() == directory
    assert directory.is_relative_to(tmp_path / "stock")
    assert (directory / "glance" / "tests" / "var" / "certificate").read_text() == "own"
    assert not list(directory.rglob("__init__.py"))
    assert (suite.environment, suite.prelude) == ("", "glance.tests")


def test_the_tests_of_a_client_are_those_of_the_variant(tmp_path):
    made = variant("stock", tmp_path)
    package = tmp_path / "stock" / "lib" / "python3.11" / "site-packages" / "openstack"
    for name in ("object_store/v1/test_obj.py", "compute/v2/test_server.py", "test_utils.py", "fixtures/image.json"):
        (package / "tests" / "unit" / name).parent.mkdir(parents=True, exist_ok=True)
        (package / "tests" / "unit" / name).touch()
    suite = suites.suite_for("openstacksdk-green", made)
    assert suite.modules == ("openstack.tests.unit.object_store.v1.test_obj", "openstack.tests.unit.test_utils")
    assert (suite.find() / "openstack" / "tests" / "unit" / "fixtures" / "image.json").exists()
    assert suites.suite_for("swiftclient-native", made).find() == made.tests


def test_a_suite_that_lacks_something_is_a_fault_and_no_end(tmp_path):
    for name in ("stock", "candidate"):
        (tmp_path / name / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    made = Sides(suites.Runners(15, "", Isolation()), Screen(), jobs=1)
    stock, candidate = (variant(name, tmp_path) for name in ("stock", "candidate"))
    (compared,) = made.compare(["glance-33-unit"], stock, [candidate])
    assert "packaged without its tests' data" in compared.failures()[0]


def test_conformance_keeps_what_its_servers_need():
    suite = suites.suite_for("conformance-glance", variant("stock"))
    assert (suite.find() / "conformance_glance.py").is_file()
    assert Path(suite.env["FASTIO_BENCHMARK_CACHE"]).is_dir()
