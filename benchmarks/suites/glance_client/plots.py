"""The CPU load over time: a column per case, a panel per row whose last run has the samples."""

from collections.abc import Iterator, Sequence

from matplotlib import pyplot
from matplotlib.figure import Figure

from benchmarks.harness import plots, statistics
from benchmarks.harness.plots import Drawing
from benchmarks.harness.results import CaseResult, Result
from benchmarks.harness.tables import number

#: Inches.
WIDTH, HEIGHT, HEAD = 4.5, 0.75, 1.0


def load(result: Result) -> Figure | None:
    shown = [case for case in result.cases if _rows(case)]
    if not shown:
        return None
    titles = list(dict.fromkeys(title for case in shown for title in _rows(case)))
    size = WIDTH * len(shown) + 1, HEIGHT * len(titles) + HEAD
    figure, axes = pyplot.subplots(
        len(titles), len(shown), figsize=size, sharex="col", sharey=True, squeeze=False, layout="constrained"
    )
    for title, row in zip(titles, axes, strict=True):
        row[0].set_ylabel(title, size=8, rotation=0, ha="right", va="center")
        for panel, case in zip(row, shown, strict=True):
            plots.plain(panel)
            if title in _rows(case):
                colour = next(colour for word, colour in plots.COLOURS.items() if word in title)
                _draw(panel, case.variants[title].details["load"], colour)
    for panel, case in zip(axes[0], shown, strict=True):
        panel.set_title(case.title or case.name, loc="left", size=9)
        panel.set_xlim(left=0)
    axes[0][0].set_ylim(bottom=0)
    figure.supxlabel("seconds; CPU load of the client, percent of one processor", size=8)
    return figure


def _draw(panel, samples: Sequence[Sequence[float]], colour: str) -> None:
    """Steps: each sample is of the time since the one before."""
    seconds, percent = zip(*samples, strict=True)
    panel.fill_between([0, *seconds], [percent[0], *percent], step="pre", color=colour, linewidth=0)


def _rows(case: CaseResult) -> list[str]:
    return [title for title, row in case.variants.items() if row.details.get("load")]


def _lines(result: Result) -> Iterator[str]:
    for case in result.cases:
        for title in _rows(case):
            samples = case.variants[title].details["load"]
            percent = [each[1] for each in samples]
            figures = f"median {number(statistics.median(percent))} %, at most {number(max(percent))} %"
            yield f"{case.title or case.name}, {title}: {number(samples[-1][0])} s, {figures}"


PLOTS = {"load": Drawing("CPU load over time", load, _lines)}
