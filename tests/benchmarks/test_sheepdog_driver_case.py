"""The suite of the sheepdog drivers: every row runs here where its driver is, with the right data."""

import dataclasses

import pytest

pytest.importorskip("psutil", reason="the engine needs the extra 'bench'")
pytest.importorskip("glance_store", reason="glance_store is not installed: pip install fastio[sheepdog]")

from benchmarks.harness import engine
from benchmarks.suites.sheepdog_driver import bench_sheepdog_driver
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
