"""What ``fastio check`` says can be expected is what was measured."""

from dataclasses import asdict

import pytest

pytest.importorskip("psutil", reason="results need the extra 'bench'")
pytest.importorskip("scipy", reason="results need the extra 'bench'")

from benchmarks.harness import keep
from benchmarks.tools import expected as tool
from fastio import expected
from fastio.config import STORES


def test_the_figures_are_those_of_the_results():
    """If not: python -m benchmarks.tools.expected."""
    measured, told = tool.measured(), expected.gains()
    for one, other in zip(map(asdict, told), map(asdict, measured), strict=True):
        for name, value in one.items():
            # Other releases of numpy may round otherwise.
            assert other[name] == (pytest.approx(value, rel=0.01) if isinstance(value, float) else value), one


def test_every_figure_of_a_driver_is_there_the_losses_too():
    cases = [(case.name.partition("-")[0], f"driver, {case.title}", name)
             for name in ("stores", "stores_rbd", "stores_s3")
             for case in keep.runs()[name].cases]  # fmt: skip
    told = [(each.store, each.what, each.source) for each in expected.gains()]
    for case in cases:
        assert told.count(case) == len(expected.WAYS)
    assert {each.verdict() for each in expected.gains()} == {
        "better", "worse", "no clear difference", "too few rounds to tell"
    }  # fmt: skip


def test_every_store_has_figures_for_each_way():
    for store in STORES:
        for way in expected.WAYS:
            chosen = expected.of([store], [way])
            assert chosen
            assert {(each.store, each.way) for each in chosen} == {(store, way)}
    assert expected.of([], expected.WAYS) == expected.of(STORES, []) == []


@pytest.mark.parametrize(
    ("low", "high", "rounds", "verdict"),
    [(1.1, 1.2, 5, "better"), (0.8, 0.9, 5, "worse"), (0.9, 1.1, 5, "no clear difference"),
     (1.1, 1.2, 2, "too few rounds to tell")],
)  # fmt: skip
def test_a_verdict_is_no_chance(low, high, rounds, verdict):
    gain = expected.Gain("s3", "threads", "get", "MB/s", 1.0, 1.0, 1.0, low, high, rounds, "stores.json")
    assert gain.verdict() == verdict
    assert expected.table([gain]).rows[0][-2:] == [verdict, "stores.json"]
