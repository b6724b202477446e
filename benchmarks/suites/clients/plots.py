"""The CPU load over time: strips for each row whose last run has the samples, of its client and of the server."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy
from matplotlib import pyplot
from matplotlib.figure import Figure

from benchmarks.harness import plots, statistics
from benchmarks.harness.plots import Drawing
from benchmarks.harness.results import CaseResult, Result
from benchmarks.harness.tables import number

#: Rows of the title, as far as they were measured.
TOLD = ("curl", "glance-stock", "glance-fastio", "cli-stock", "cli-fastio", "openstack-stock", "openstack-fastio")
#: Of the strips of a row: whose load it is, and what the figures of a run call it.
STRIPS = {"client": "load", "server": "server_load"}
#: Inches around the rows of a case: its title, and its axis.
AROUND = 0.6


def load(result: Result) -> Figure | None:
    """A panel for each case that has samples, as many as fit on a page: the first ones."""
    cases = [case for case in result.cases if _rows(case)]
    if not cases:
        return None
    # A picture is no higher than it is wide.
    while _height(cases) > plots.WIDTH and len(cases) > 1:
        cases.pop()
    heights, height = list(map(_strips, cases)), _height(cases)
    figure, panels = pyplot.subplots(
        len(cases), figsize=(plots.WIDTH, height), layout="constrained", squeeze=False, height_ratios=heights
    )
    for panel, case in zip(panels[:, 0], cases, strict=True):
        _draw(figure, panel, case)
    below = ", the server's below the client's" if any(map(_has_server, cases)) else ""
    plots.below(
        figure,
        f"seconds; strips: CPU load in the last run{below}; marks: medians of the rounds, lines: lowest to highest",
    )
    if len(cases) == 1:
        plots.head(figure, f"Medians: {_told(cases[0])}", cases[0].title or cases[0].name)
        return figure
    plots.title(figure, _finding(cases))
    for panel, case in zip(panels[:, 0], cases, strict=True):
        text = f"{case.title or case.name}: {_told(case)}"
        panel.set_title(plots.folded(text, plots.QUESTION_LETTERS), loc="left", size=plots.SIZE)
    return figure


def _strips(case: CaseResult) -> float:
    """Inches of a case's strips."""
    return plots.ROW_HEIGHT * len(_rows(case)) * (1 + _has_server(case))


def _height(cases: Sequence[CaseResult]) -> float:
    """Inches of the whole."""
    return plots.HEAD_HEIGHT + 0.15 + sum(map(_strips, cases)) + AROUND * (len(cases) - 1)


def _draw(figure: Figure, panel: Any, case: CaseResult) -> None:
    """A strip for each row: its client's load, and below it the server's if there are samples of it."""
    titles, strips = _rows(case), list(STRIPS.values())[: 1 + _has_server(case)]
    details = {title: case.variants[title].details for title in titles}
    most = max(percent for own in details.values() for strip in strips for _, percent in own.get(strip, ()))
    height = 0.76 / len(strips)
    drawn: Any = None
    for position, title in enumerate(titles):
        for place, strip in enumerate(strips):
            if samples := details[title].get(strip):
                seconds, percent = zip(*samples, strict=True)
                top = position - 0.38 + place * height
                # Each sample is of the time since the one before.
                drawn = panel.pcolormesh(
                    [0.0, *seconds], [top, top + height], numpy.array([percent]), cmap="YlGnBu", vmin=0, vmax=most
                )
        rounds = case.figures(title)
        middle = statistics.median(rounds)
        panel.plot([middle], [position], "D", color="black", markersize=3)
        plots.spread(panel, position, middle, rounds)
    panel.set_yticks(range(len(titles)), titles)
    panel.set_ylim(len(titles) - 0.4, -0.6)
    panel.set_xlim(left=0)
    bar = figure.colorbar(drawn, ax=panel, aspect=30, pad=0.01)
    # A panel of three rows has room for no more.
    bar.set_label("client / server, %" if len(strips) > 1 else "CPU load, % of one processor", size=plots.SIZE)
    bar.ax.tick_params(labelsize=plots.SIZE)
    plots.plain(panel)


def _told(case: CaseResult) -> str:
    return "; ".join(
        f"{title} {number(case.median(title, 'load_percent'))} % of a processor for {number(case.median(title))} s"
        for title in TOLD
        if title in _rows(case)
    )


def _finding(cases: Sequence[CaseResult]) -> str:
    """What several cases say together."""
    ratios = []
    for case in cases:
        stock, fast = (case.median(f"openstack-{row}", "cpu_seconds") for row in ("stock", "fastio"))
        if stock and fast:
            ratios.append(fast / stock)
    if not ratios:
        return "CPU load of the clients and of the server over time"
    low, high = number(min(ratios)), number(max(ratios))
    return f"With fastio, the commands of openstack take {low} to {high} of stock's CPU time, their start included"


def _has_server(case: CaseResult) -> bool:
    return any(case.variants[title].details.get(STRIPS["server"]) for title in _rows(case))


def _rows(case: CaseResult) -> list[str]:
    return [title for title, row in case.variants.items() if row.details.get("load")]


def _lines(result: Result) -> Iterator[str]:
    for case in result.cases:
        for title in _rows(case):
            for whose, strip in STRIPS.items():
                samples: Sequence[Sequence[float]] = case.variants[title].details.get(strip, ())
                if samples:
                    percent = [each[1] for each in samples]
                    figures = f"median {number(statistics.median(percent))} %, at most {number(max(percent))} %"
                    server = "" if strip == STRIPS["client"] else f", its {whose}"
                    yield f"{case.title or case.name}, {title}{server}: {number(samples[-1][0])} s, {figures}"


PLOTS = {"load": Drawing("CPU load over time", load, _lines)}
