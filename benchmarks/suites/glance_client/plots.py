"""The CPU load over time: a strip for each row whose last run has the samples."""

from collections.abc import Iterator, Sequence

import numpy
from matplotlib import pyplot
from matplotlib.figure import Figure

from benchmarks.harness import plots, statistics
from benchmarks.harness.plots import Drawing
from benchmarks.harness.results import CaseResult, Result
from benchmarks.harness.tables import number

#: Rows of the title, as far as they were measured.
TOLD = ("curl", "cli-stock", "cli-fastio")


def load(result: Result) -> Figure | None:
    """The first case that has samples: a result of more than one is drawn in parts."""
    case = next((case for case in result.cases if _rows(case)), None)
    if case is None:
        return None
    titles = _rows(case)
    height = plots.HEAD_HEIGHT + plots.ROW_HEIGHT * len(titles) + 0.15
    figure, panel = pyplot.subplots(figsize=(plots.WIDTH, height), layout="constrained")
    samples = {title: case.variants[title].details["load"] for title in titles}
    most = max(percent for own in samples.values() for _, percent in own)
    for position, title in enumerate(titles):
        seconds, percent = zip(*samples[title], strict=True)
        # Each sample is of the time since the one before.
        edges = [0.0, *seconds]
        strip = panel.pcolormesh(
            edges, [position - 0.38, position + 0.38], numpy.array([percent]), cmap="YlGnBu", vmin=0, vmax=most
        )
        rounds = case.figures(title)
        middle = statistics.median(rounds)
        panel.plot([middle], [position], "D", color="black", markersize=3)
        plots.spread(panel, position, middle, rounds)
    panel.set_yticks(range(len(titles)), titles)
    panel.set_ylim(len(titles) - 0.4, -0.6)
    panel.set_xlim(left=0)
    bar = figure.colorbar(strip, ax=panel, aspect=30, pad=0.01)
    bar.set_label("CPU load, % of one processor", size=plots.SIZE)
    bar.ax.tick_params(labelsize=plots.SIZE)
    plots.plain(panel)
    plots.below(figure, "seconds; strips: the last run; marks: medians of the rounds, lines: lowest to highest")
    told = [
        f"{title} {number(case.median(title, 'load_percent'))} % of a processor for {number(case.median(title))} s"
        for title in TOLD
        if title in titles
    ]
    plots.head(figure, f"Medians: {'; '.join(told)}", case.title or case.name)
    return figure


def _rows(case: CaseResult) -> list[str]:
    return [title for title, row in case.variants.items() if row.details.get("load")]


def _lines(result: Result) -> Iterator[str]:
    for case in result.cases:
        for title in _rows(case):
            samples: Sequence[Sequence[float]] = case.variants[title].details["load"]
            percent = [each[1] for each in samples]
            figures = f"median {number(statistics.median(percent))} %, at most {number(max(percent))} %"
            yield f"{case.title or case.name}, {title}: {number(samples[-1][0])} s, {figures}"


PLOTS = {"load": Drawing("CPU load over time", load, _lines)}
