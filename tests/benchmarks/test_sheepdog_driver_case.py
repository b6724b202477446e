"""The suite of the sheepdog drivers: every row runs here where its driver is, with the right data."""

import dataclasses

import pytest

pytest.importorskip("psutil", reason="the engine needs the extra 'bench'")
pytest.importorskip("glance_store", reason="glance_store is not installed: pip install fastio[sheepdog]")

from benchmarks.harness import engine
from benchmarks.suites.sheepdog_driver import bench_sheepdog_driver
from benchmarks.suites.sheepdog_driver import workload as sheepdog_driver
from tests.benchmarks.running import measured
from tests.conftest import needs_eventlet, needs_oslo

pytestmark = [needs_oslo, needs_eventlet, pytest.mark.usefixtures("cache")]

#: More than one object of 4 MiB, and no whole number of anything.
SIZE = (5 << 20) + 17


CASES = {case.name: case for case in bench_sheepdog_driver.CASES}


@pytest.mark.parametrize("name", ["get-none", "add-none"])
def test_every_row_runs_with_the_right_data(name):
    case = dataclasses.replace(CASES[name], quick={"size": SIZE})
    for title, row in measured(case, engine.Options(quick=True)).variants.items():
        assert row.skipped or row.runs[0]["bytes"] == SIZE, title


def test_the_rows_are_those_that_were_promised():
    for case in CASES.values():
        assert [variant.title for variant in case.all_variants()] == list(sheepdog_driver.VARIANTS)
        assert case.parameters["size"] >= 256 << 20
    assert {(case.parameters["task"], case.parameters["pauses"]) for case in CASES.values()} == {
        ("get", "real"), ("add", "real"), ("get", "none"), ("add", "none")
    }  # fmt: skip


def test_why_a_row_is_left_out(monkeypatch):
    monkeypatch.setattr(sheepdog_driver.importlib.util, "find_spec", lambda name: None)
    assert sheepdog_driver.why_not("native-fastio") == "not installed: glance_store (the extra 'sheepdog' has it)"
    assert sheepdog_driver.why_not("reference-pipeline") == ""
