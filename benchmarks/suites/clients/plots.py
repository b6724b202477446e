"""The CPU load over time: a strip for each row whose last run has the samples."""

from collections.abc import Iterator

import numpy
from matplotlib import pyplot
from matplotlib.figure import Figure

from benchmarks.harness import plots, statistics
from benchmarks.harness.plots import Drawing
from benchmarks.harness.results import CaseResult, Result
from benchmarks.harness.tables import number

#: Rows of the title, as far as they were measured.
TOLD = ("curl", "glance-stock", "glance-fastio", "cli-stock", "cli-fastio", "openstack-stock", "openstack-fastio")


def load(result: Result) -> Figure | None:
    """The first case that has samples."""
    case = next((case for case in result.cases if _rows(case)), None)
    if case is None:
        return None
    rows = _rows(case)
    height = plots.HEAD_HEIGHT + 0.15 + plots.ROW_HEIGHT * len(rows)
    figure, panel = pyplot.subplots(figsize=(plots.WIDTH, height), layout="constrained")
    most = max(percent for samples in rows.values() for _, percent in samples)
    for position, (title, samples) in enumerate(rows.items()):
        seconds, percent = zip(*samples, strict=True)
        # Each sample is of the time since the one before.
        edges = [0.0, *seconds], [position - 0.38, position + 0.38]
        strip = panel.pcolormesh(*edges, numpy.array([percent]), cmap="YlGnBu", vmin=0, vmax=most)
        rounds = case.figures(title)
        panel.plot([statistics.median(rounds)], [position], "D", color="black", markersize=3)
        plots.spread(panel, position, statistics.median(rounds), rounds)
    panel.set_yticks(range(len(rows)), rows)
    panel.set_ylim(len(rows) - 0.4, -0.6)
    panel.set_xlim(left=0)
    bar = figure.colorbar(strip, ax=panel, aspect=30, pad=0.01)
    # A panel of three rows has room for no more.
    bar.set_label("% of one processor", size=plots.SIZE)
    bar.ax.tick_params(labelsize=plots.SIZE)
    plots.plain(panel)
    words = "seconds; strips: CPU load in the last run; marks: medians of the rounds, lines: lowest to highest"
    plots.below(figure, words)
    medians = "; ".join(
        f"{title} {number(case.median(title, 'load_percent'))} % of a processor for {number(case.median(title))} s"
        for title in TOLD
        if title in rows
    )
    plots.head(figure, f"Medians: {medians}", case.title or case.name)
    return figure


def _rows(case: CaseResult) -> dict[str, list[list[float]]]:
    """The samples of each row that has some."""
    return {title: row.details["load"] for title, row in case.variants.items() if row.details.get("load")}


def _lines(result: Result) -> Iterator[str]:
    for case in result.cases:
        for title, samples in _rows(case).items():
            percent = [each[1] for each in samples]
            figures = f"median {number(statistics.median(percent))} %, at most {number(max(percent))} %"
            yield f"{case.title or case.name}, {title}: {number(samples[-1][0])} s, {figures}"


PLOTS = {"load": Drawing("CPU load over time", load, _lines)}
