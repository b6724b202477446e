"""The benchmark of counts with few calls, and what is said of its figures."""

import dataclasses

import pytest

pytest.importorskip("psutil", reason="suites need the extra 'bench'")
pytest.importorskip("scipy", reason="tables need the extra 'bench'")

from benchmarks.suites.counting import tables
from benchmarks.suites.counting.bench_counting import CASES
from tests.benchmarks import samples
from tests.benchmarks.running import measured


def test_each_way_counts_each_call() -> None:
    """A run in which one is not counted is not verified."""
    found = measured(dataclasses.replace(CASES[0], parameters={"count": 100}, warmup=0, rounds=1))
    assert set(found.variants) == set(CASES[0].variants)


def test_what_may_be_and_what_is() -> None:
    rows = {name: samples.variant([1.0] * 5) for name in ("took", "hooked")}
    for name, figure in (("took", 99.0), ("hooked", 101.0)):
        for run in rows[name].runs:
            run["call_ns"] = figure
    (table,) = tables.judgement(samples.result(samples.case(rows, name="calls", unit="ns", value="call_ns")))
    assert [(row[0], row[-1]) for row in table.rows] == [("took", "yes"), ("hooked", "no")]
