"""The plots of a result, for a page. To import it matplotlib is needed."""

from collections.abc import Iterator

from benchmarks.harness import gains, plots, statistics
from benchmarks.harness.page import Plot
from benchmarks.harness.results import CaseResult, Result
from benchmarks.harness.suites import Suite
from benchmarks.harness.tables import number


def of_all(result: Result) -> Iterator[Plot]:
    """An overview of fastio's gains and losses in all cases, if there are several."""
    if (figure := plots.result_figure(result)) is not None:
        lines = [f"{each.case.title or each.case.name}, {_told(each)}" for each in gains.of_result(result)]
        yield Plot("Gains and losses", plots.svg(figure), lines)


def of_case(case: CaseResult) -> Iterator[Plot]:
    """One case, if it has rows that can be compared."""
    if (figure := plots.case_figure(case)) is not None:
        yield Plot(case.title or case.name, plots.svg(figure), list(_lines(case)))


def _lines(case: CaseResult) -> Iterator[str]:
    compared = {each.title: each for each in gains.compared(case)}
    for title in case.variants:
        figures = case.figures(title)
        if figures:
            ends = f"runs from {number(min(figures))} to {number(max(figures))}"
            times = f"; {_told(compared[title])}" if title in compared else ""
            yield f"{title}: {number(statistics.median(figures))} {case.unit}, {ends}{times}"


def _told(each: gains.Gain) -> str:
    return f"{each.title} against {each.against}: {each.times} times better, {each.verdict}"


def of_suite(suite: Suite, result: Result) -> Iterator[Plot]:
    """Return the plots of this suite only."""
    for drawing in suite.plots().values():
        if (figure := drawing.figure(result)) is not None:
            yield Plot(drawing.caption, plots.svg(figure), [])
