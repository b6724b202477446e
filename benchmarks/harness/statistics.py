"""Statistics of the raw figures, and how far they can be trusted.

Medians and ranks throughout, because on a shared machine times have long tails.
"""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy

#: Fewer rounds than this are reported, and doubted.
FEW_ROUNDS = 7
#: Median absolute deviation, as a part of the median, from which a row is doubted.
WIDE_SPREAD = 0.10
#: A single run this far from the median, as a part of it, is mentioned.
FAR_OFF = 0.5
#: Seconds below which starting and stopping the clock is a visible part of a run.
SHORT = 0.001
#: Share of a processor, over a second, from which a worker of a load generator is busy: it is one thread, and can have
#: no more than 1.
BUSY = 0.9
#: Share of the seconds of a run in which a worker may be busy.
TOLERATED = 0.1

#: Fewer pairs than this have no 95 % interval of :func:`paired_ratio`.
LEAST_PAIRS = 6

#: The argument of most functions here.
Figures: TypeAlias = Sequence[float] | numpy.ndarray

RESAMPLES = 10_000


class Interval(NamedTuple):
    """A ratio and its 95 % confidence interval."""

    ratio: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.ratio:.3g} ({self.low:.3g}–{self.high:.3g})"


def median(figures: Figures) -> float:
    return float(numpy.median(figures))


def deviation(figures: Figures) -> float:
    """Median absolute deviation from the median: half of the figures are no further from it."""
    return float(numpy.median(numpy.abs(numpy.asarray(figures) - numpy.median(figures))))


class Spread(NamedTuple):
    """The ends of figures, their median, and the median absolute deviation as a part of it; 0 if the median is 0."""

    least: float
    median: float
    most: float
    deviation: float


def spread(figures: Figures) -> Spread:
    middle = median(figures)
    return Spread(min(figures), middle, max(figures), deviation(figures) / middle if middle else 0.0)


def ratio(above: Figures, below: Figures, seed: int = 0) -> Interval:
    """The median of ``above`` divided by that of ``below``, with its bootstrap interval.

    The interval is of percentiles; the two are resampled on their own. A single figure has no spread to resample: its
    interval is then too narrow.
    """
    random = numpy.random.default_rng(seed)
    medians = []
    for figures in (above, below):
        values = numpy.asarray(figures, dtype=float)
        medians.append(numpy.median(values[random.integers(len(values), size=(RESAMPLES, len(values)))], axis=1))
    low, high = numpy.percentile(medians[0] / medians[1], (2.5, 97.5))
    return Interval(median(above) / median(below), float(low), float(high))


def paired_ratio(above: Sequence[float], below: Sequence[float]) -> Interval:
    """The median of the ratios of pairs, with its 95 % confidence interval.

    With fewer than :data:`LEAST_PAIRS` pairs the interval is too narrow.

    :raises ValueError: if there is no pair, or not as many figures on both sides
    """
    ratios = [one / other for one, other in zip(above, below, strict=True)]
    if not ratios:
        raise ValueError("there is no pair")
    return Interval(median(ratios), *median_interval(ratios))


def median_interval(figures: Figures) -> tuple[float, float]:
    """The 95 % confidence interval of the median.

    It goes from one of the figures to another, by their order alone, so it holds whatever their distribution. Of fewer
    than six it goes from the least to the largest, and is too narrow.
    """
    ordered = sorted(map(float, figures))
    outside = _outside(len(ordered))
    return ordered[outside], ordered[-1 - outside]


@functools.cache
def _outside(count: int) -> int:
    """How many of so many figures, on each side, an interval of 95 % for their median may leave out."""
    # scipy.stats takes a second to import, and only comparisons need it.
    from scipy.stats import binom

    return max(0, int(binom.ppf(0.025, count, 0.5)) - 1)


class Moments(NamedTuple):
    """Mean and standard deviation (of a sample), and how many figures they are of."""

    mean: float
    deviation: float
    count: int  # type: ignore[assignment]


def moments(figures: Figures) -> Moments:
    """Mean and standard deviation: for comparison with what others have published, not for a figure to rely on."""
    values = numpy.asarray(figures, dtype=float)
    return Moments(float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0, len(values))


def without_outliers(figures: Figures, sigmas: float = 2.0) -> numpy.ndarray:
    """Return the figures within so many standard deviations of the mean, in one pass, like the published method."""
    values = numpy.asarray(figures, dtype=float)
    found = moments(figures)
    return values[numpy.abs(values - found.mean) <= sigmas * found.deviation]


def rank_test(first: Figures, second: Figures) -> float:
    """The p-value of the two-sided Mann-Whitney test: how often chance alone would order the figures like this."""
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(first, second, alternative="two-sided").pvalue)


def smallest_p(first: int, second: int) -> float:
    """The smallest p-value that the rank test can give for these numbers of figures on the two sides."""
    return 2 / math.comb(first + second, first)


def doubts(figures: Sequence[float], usual_rounds: int | None = None, seconds: Sequence[float] = ()) -> list[str]:
    """Why the median of these figures should not be trusted blindly, in words.

    :param usual_rounds: how many the other rows have; fewer here by design are said to be so
    :param seconds: duration of each run, to see whether that is enough
    """
    found = []
    if len(figures) < FEW_ROUNDS:
        by_design = usual_rounds is not None and len(figures) < usual_rounds
        found.append(f"only {len(figures)} round{'s' * (len(figures) != 1)}{', by design' * by_design}")
    middle = median(figures)
    if middle and deviation(figures) / middle > WIDE_SPREAD:
        found.append(f"wide spread: ±{deviation(figures) / middle:.0%} around the median")
    far = max((abs(figure - middle) / middle for figure in figures), default=0) if middle else 0
    if far > FAR_OFF:
        found.append(f"one run is {far:.0%} off the median")
    if seconds and min(seconds) < SHORT:
        found.append(f"a run took only {min(seconds) * 1000:.2g} ms")
    return found


def limited(share: float) -> bool:
    """Whether a worker that used so much of a processor may have been what limited the run.

    :param share: that of the 90th of a hundred seconds, see :data:`TOLERATED`
    """
    return share >= BUSY


def limit_note(share: float) -> str:
    """That a run was limited by its load generator, or a transfer by its client."""
    return (
        f"LIMITED BY THE LOAD GENERATOR: a worker used {share:.0%} of a processor; more are needed to load the service"
    )
