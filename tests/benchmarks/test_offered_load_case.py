"""How the offered load at the limit is found, and where it is."""

import math
from typing import Any

import pytest

from benchmarks.suites.concurrency.offered import Trial, reached, search
from tests.conftest import with_services

pytestmark = with_services

LADDER = {"lowest": 10, "factor": 2, "highest": 100, "limit": 500}


def trial(rate: float, p99: float) -> Trial:
    return Trial(rate, p99 / 2, p99, 0.5, True)


def offering(*times: float) -> Any:
    """An offer that has these 99th percentiles, one after the other."""
    left = list(times)
    return lambda rate: trial(rate, left.pop(0))


@pytest.mark.parametrize(
    ("times", "found"),
    [
        # It ends at the first rate that is too much twice; the better one of the two counts.
        ((20, 40, 700, 600), [(10, 20), (20, 40), (40, 600)]),
        # One hiccup does not end it, nor does it go beyond the highest rate.
        ((20, 9000, 40, 60, 80), [(10, 20), (20, 40), (40, 60), (80, 80)]),
    ],
)
def test_a_search(times: tuple[float, ...], found: list[tuple[float, float]]) -> None:
    assert [(each.rate, each.p99) for each in search(offering(*times), LADDER)] == found


@pytest.mark.parametrize(
    ("trials", "rate"),
    [
        # Of the way from 125 to 2,000 in logarithms, 500 is the half; so is the square root of 800 from 20 to 40.
        ([(10, 20), (20, 125), (40, 2000)], math.sqrt(800)),
        ([(20, 125), (40, 500.001)], 40),
        # Where much has failed there is no time.
        ([(20, 125), (40, math.inf)], 20),
        ([(10, 20), (20, 30)], 20),
        ([(10, 900)], 10),
    ],
)
def test_the_limit_is_between_the_last_two_rates(trials: list[tuple[float, float]], rate: float) -> None:
    assert reached([trial(*each) for each in trials], 500) == pytest.approx(rate)
