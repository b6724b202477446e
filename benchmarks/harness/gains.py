"""fastio's gains and losses in a result: each row with fastio against the same row without, and whether it is chance.

A row is better or worse than another if the 95 % interval of the ratio of their medians leaves out 1. With fewer than
three rounds there is no such interval, and no verdict.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from benchmarks.harness import statistics
from benchmarks.harness.results import FEW_ROUNDS, CaseResult, Result
from fastio.tables import number

BETTER, WORSE, UNCLEAR, FEW = "better", "worse", "no clear difference", "too few rounds to tell"
VERDICTS = (BETTER, WORSE, UNCLEAR, FEW)
#: Rows that are compared with others have one of these in their names.
_COMPARED = ("fastio", "candidate", "traced")
#: The rows that rows with fastio are compared with, by default.
_STOCK = ("stock", "old")
#: How the services run that are named in a case.
_SERVICES = {"glance-32": "eventlet", "glance-33": "native", "logs-": "eventlet"}
#: More rows than this, or several with more letters than this, are given by their number.
_LISTED, _LETTERS = 3, 140


def verdict(low: float, high: float, rounds: int) -> str:
    """The verdict of the 95 % interval of a ratio."""
    if rounds < FEW_ROUNDS:
        return FEW
    return BETTER if low > 1 else WORSE if high < 1 else UNCLEAR


@dataclass(frozen=True)
class Gain:
    """A row against another: how many times better it is; more than 1 is better."""

    case: CaseResult
    title: str
    against: str
    #: with the 95 % interval; with too few rounds, from the worst round against the best to the other way round
    times: statistics.Interval
    rounds: int
    #: ``native``, ``eventlet`` or nothing: how Python ran, if the row or its case has that
    mode: str

    @property
    def verdict(self) -> str:
        return verdict(self.times.low, self.times.high, self.rounds)


def gain(case: CaseResult, title: str, against: str, key: str = "") -> Gain | None:
    """A row against another one; None where one of the two has no figures.

    :param key: of another figure of the runs than the case's, of which less is better
    """
    times = case.better(title, against, key)
    if times is None:
        return None
    return Gain(case, title, against, times, min(map(case.rounds, (title, against))), _mode(case, title))


def _mode(case: CaseResult, title: str) -> str:
    said = (mode for mode in ("native", "eventlet") if mode in title)
    return next(said, next((mode for service, mode in _SERVICES.items() if case.name.startswith(service)), ""))


def gains(case: CaseResult, key: str = "") -> list[Gain]:
    """All rows with fastio or a candidate against stock, and those that are traced against those that are not."""
    pairs = ((title, _against(case, title)) for title in case.variants)
    found = [
        gain(case, title, against, key)
        for title, against in pairs
        # The speed of traced rows is compared with that of the same row without a trace only.
        if against != title and any(word in title for word in _COMPARED) and not against.endswith("traced")
    ]
    return [each for each in found if each is not None]


def _against(case: CaseResult, title: str) -> str:
    same = (title.replace(own, word) for own in ("fastio", "candidate") for word in _STOCK if own in title)
    return case.variants[title].against or next((each for each in same if each in case.variants), case.baseline)


def of_result(result: Result) -> Iterator[Gain]:
    for case in result.cases:
        yield from gains(case)


def compared(case: CaseResult) -> list[Gain]:
    """Return the question of a case: fastio's gain or, if fastio itself is the baseline, that of others."""
    found = gains(case)
    if found and "fastio" not in case.baseline:
        return found
    others = (gain(case, title, case.baseline) for title in case.variants if title != case.baseline)
    return [each for each in others if each is not None]


def finding(case: CaseResult) -> str:
    """Summarise the figures of a case in one sentence."""
    found = gains(case)
    if found and "fastio" not in case.baseline:
        return told(found)
    others = [title for title in case.variants if case.figures(title) and not title.startswith(("reference", "limit"))]
    others = [title for title in others if title == case.baseline or "fastio" not in title]
    if len(others) < 2 or not case.figures(case.baseline):
        return ""
    middles = {title: case.median(title) or 0.0 for title in others}
    best = (max if case.more_is_better else min)(middles, key=lambda title: middles[title])
    if best == case.baseline:
        return f"None of {len(others) - 1} others is better than {best}"
    against = gain(case, best, case.baseline)
    much = f": {_times(against)}, {against.verdict}" if against else ""
    return f"Best of {len(others)} by the median is {best}, against {case.baseline}{much}"


def told(found: Iterable[Gain], name: Callable[[Gain], str] = lambda each: each.title) -> str:
    """Count the better, worse and undecided rows, with their ratios; a few are named."""
    found = list(found)
    parts = []
    for word in VERDICTS:
        own = [each for each in found if each.verdict == word]
        named = ", ".join(f"{name(each)} {_times(each)}" for each in own)
        if len(own) > _LISTED or len(own) > 1 and len(named) > _LETTERS:
            ratios = [each.times.ratio for each in own]
            parts.append(f"{word}: {len(own)} of {len(found)}, {number(min(ratios))} to {number(max(ratios))} x")
        elif own:
            parts.append(f"{word}: {named}")
    text = "; ".join(parts)
    if all("fastio" in each.title and "fastio" not in each.against for each in found):
        return f"With fastio, {text}"
    return text[:1].upper() + text[1:]


def _times(each: Gain) -> str:
    return f"{number(each.times.ratio)} x"
