"""Every table of the benchmarks loses nothing, however narrow the terminal is."""

from pathlib import Path

import pytest

pytest.importorskip("scipy", reason="tables need the extra 'bench'")

from benchmarks.harness import results, tables
from benchmarks.harness.suites import Suite
from benchmarks.tools import newest, platforms
from tests import widths

RESULTS = sorted((results.ROOT / "doc" / "source" / "results").glob("*.json"))


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_results(path: Path) -> None:
    result = results.read(path)
    for table in [*tables.tables(result), *Suite(result.suite).judgement(result)]:
        widths.check(table)


def test_platforms_and_distributions() -> None:
    for table in platforms.tables(platforms.kept()):
        widths.check(table)


def test_new_code() -> None:
    name = "glance_store._drivers.filesystem:Store.a_function_with_a_long_name"
    new = newest.New(name, "glance_store 9.0.0", "glance_store 5.7.0", ["-a", "+b"], "it reads without a limit")
    widths.check(newest.table([new]))
