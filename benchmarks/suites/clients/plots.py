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


def load(result: Result) -> Figure | None:
    """The first case that has samples."""
    case = next((case for case in result.cases if _rows(case)), None)
    if case is None:
        return None
    height = plots.HEAD_HEIGHT + 0.15 + plots.ROW_HEIGHT * len(_rows(case)) * (1 + _has_server(case))
    figure, panel = pyplot.subplots(figsize=(plots.WIDTH, height), layout="constrained")
    _draw(figure, panel, case)
    below = ", the server's below the client's" if _has_server(case) else ""
    plots.below(
        figure,
        f"seconds; strips: CPU load in the last run{below}; marks: medians of the rounds, lines: lowest to highest",
    )
    medians = "; ".join(
        f"{title} {number(case.median(title, 'load_percent'))} % of a processor for {number(case.median(title))} s"
        for title in TOLD
        if title in _rows(case)
    )
    plots.head(figure, f"Medians: {medians}", case.title or case.name)
    return figure


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
