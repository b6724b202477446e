"""The findings of the benchmarks against stock."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness.engine import Case
from benchmarks.validate import measurements
from benchmarks.validate.environments import Environment, Variant
from tests.benchmarks import samples
from tests.benchmarks.samples import FAILURE, SPREAD, times


def row_of(candidate, stock=SPREAD, **fields):
    rows = {"eventlet-stock": stock, "eventlet-candidate": candidate}
    (row,) = measurements.rows(samples.result(samples.case(rows, name="communicate/cat", **fields)))
    assert (row.variant, row.mode, row.case) == ("candidate", "eventlet", "communicate/cat")
    return row


def variant(name):
    return Variant(name, Environment(Path("/environments") / name), "1.0", None)


@pytest.mark.parametrize("unit", ["MB/s", "ms"])
def test_the_verdict_holds_in_any_unit(unit):
    faster, slower, little = (row_of(times(factor), unit=unit) for factor in (0.5, 2, 1.12))
    assert (faster.verdict, faster.failure) == ("faster", False)
    assert faster.better.ratio == pytest.approx(2)
    assert (slower.verdict, slower.failure) == ("slower", True)
    assert "slower" in str(slower)
    assert little.failure is False


def test_close_figures_are_noise():
    assert row_of(SPREAD).verdict == "noise"
    # Significant by its ranks, and yet nothing to speak of.
    exact = [0.5 + number / 10_000 for number in range(7)]
    close = [seconds * 1.01 for seconds in exact]
    assert row_of(close, stock=exact).verdict == "noise (within 3%)"


def test_the_other_figures_stand_beside_stocks():
    row = row_of(times(2))
    assert row.figures["CPU s/GiB"][1] == pytest.approx(2 * row.figures["CPU s/GiB"][0])
    assert row.figures["reads/MiB"] == (32, 32)
    assert row.figures["waits/MiB"] == (None, None)


def test_the_cost_of_commands():
    def commands(factor, waits):
        found = samples.variant(times(factor))
        for run in found.runs:
            run |= {"bytes": 0, "commands": 4, "cpu_seconds": factor, "waits": waits}
        return found

    figures = row_of(commands(2, 8), stock=commands(1, 40)).figures
    assert figures["CPU ms/command"] == (250, 500)
    assert figures["waits/command"] == (10, 2)
    assert figures["CPU s/GiB"] == figures["waits/MiB"] == (None, None)
    assert row_of(times(2)).figures["waits/command"] == (None, None)


def test_wrong_data_is_a_failure():
    row = row_of(samples.variant(SPREAD, verified=False))
    assert row.failure
    assert row.verdict.startswith("WRONG DATA")


def test_a_variant_that_can_not_run_what_stock_can():
    row = row_of(samples.variant([], failure=FAILURE))
    assert (row.verdict, row.failure) == ("FAILED: exit status 1: ValueError: <bad>", True)
    both = row_of(samples.variant([], failure=FAILURE), stock=samples.variant([], failure=FAILURE))
    assert not both.failure
    stock = row_of(SPREAD, stock=samples.variant([], failure=FAILURE))
    assert (stock.verdict, stock.failure) == ("stock: FAILED: exit status 1: ValueError: <bad>", False)


def skipping(*rows):
    """The rows of as many cases: each is given as the seconds of the candidate's runs, or as None if it is skipped."""
    made = [
        samples.case({"native-stock": SPREAD, "native-candidate": row or samples.variant([], skipped="no nginx")},
                     name=f"input/{number}")
        for number, row in enumerate(rows)
    ]  # fmt: skip
    return measurements.rows(samples.result(*made))


def test_a_benchmark_that_cannot_run_here_is_no_failure():
    absent, measured = skipping(None, SPREAD)
    assert (absent.verdict, absent.skipped, absent.failure) == ("skipped: no nginx", True, False)
    assert not measured.skipped


def test_a_variant_of_which_nothing_can_run_here_fails():
    rows = skipping(None, None)
    assert all(row.failure for row in rows)
    assert str(rows[0]).endswith("skipped: no nginx, as was every benchmark, which shows nothing")


def test_the_rows_of_a_case_are_the_variants():
    case = Case(
        "cat", "communicate",
        ("native-stock", "native-fastio", "eventlet-stock", "eventlet-fastio", "limit"), baseline="eventlet-stock",
    )  # fmt: skip
    variants = [variant(name) for name in ("stock", "candidate", "fastio")]
    adapted = measurements.adapt(case, "communicate", variants, ("native", "eventlet"))
    assert adapted.name == "communicate/cat"
    rows: Any = adapted.variants
    assert [(row.name, row.title, row.against) for row in rows] == [
        ("native-stock", "native-stock", "native-stock"),
        ("native-stock", "native-candidate", "native-stock"),
        ("native-fastio", "native-fastio", "native-stock"),
        ("eventlet-stock", "eventlet-stock", "eventlet-stock"),
        ("eventlet-stock", "eventlet-candidate", "eventlet-stock"),
        ("eventlet-fastio", "eventlet-fastio", "eventlet-stock"),
    ]
    assert {row.python for row in rows if "candidate" in row.title} == {"/environments/candidate/bin/python"}
    assert measurements.adapt(case, "communicate", variants, ("threads",)) is None
