"""The plots of a result, for a page. To import it matplotlib is needed."""

from collections.abc import Iterator

from benchmarks.harness import plots, statistics, tables
from benchmarks.harness.results import CaseResult, Result
from benchmarks.harness.suites import Suite
from benchmarks.harness.tables import number
from fastio.page import Plot

#: Of every plot of medians.
_MEDIANS = "medians, and every run as a dot"


def of_all(result: Result) -> Plot | None:
    """All cases at one glance, if they are meant to be seen so."""
    shown = tables.overview_cases(result)
    if not any(case.measured() for case in shown):
        return None
    lines = [line for case in shown for line in _lines(case, f"{case.label}, {case.panel}, ")]
    return Plot(f"Overview: {_MEDIANS}", plots.svg(plots.overview_figure(result)), lines)


def of_case(case: CaseResult) -> Plot | None:
    """One case, if it has figures."""
    if not case.measured():
        return None
    return Plot(f"{case.title or case.name}: {_MEDIANS}", plots.svg(plots.case_figure(case)), list(_lines(case)))


def _lines(case: CaseResult, prefix: str = "") -> Iterator[str]:
    for title in case.variants:
        figures = case.figures(title)
        if figures:
            middle, against = number(statistics.median(figures)), case.against(title)
            ends = f"runs from {number(min(figures))} to {number(max(figures))}"
            ratio = "" if title == against else f"; times better than {against}: {tables.ratio(case, title)}"
            yield f"{prefix}{title}: {middle} {case.unit}, {ends}{ratio}"


def of_suite(suite: Suite, result: Result) -> Iterator[Plot]:
    """What only this suite draws."""
    for drawing in suite.plots().values():
        figure = drawing.figure(result)
        if figure is not None:
            yield Plot(drawing.caption, plots.svg(figure), list(drawing.lines(result)))
