"""Disk against Swift: rolling averages over the requests and histograms.

One row per scenario; disk and Swift, stock and fastio on the same axes. It reads the records of the runs, so it can be
drawn as long as they are there.
"""

from collections.abc import Mapping

import numpy
from matplotlib import pyplot
from matplotlib.figure import Figure

from benchmarks.harness import statistics
from benchmarks.harness.plots import Drawing, plain
from benchmarks.harness.results import Result
from benchmarks.suites.disk_swift import records, tables

#: Inches of a panel.
WIDTH, HEIGHT, HEAD = 3.4, 1.9, 0.8
#: Requests of a rolling average.
ROLLING = 20
BINS = 40
#: A histogram ends at this percentile: a few that are far off would squeeze all others into one bar.
SHOWN = 99

COLOURS = {
    "disk-stock": "#b3c6de",
    "disk-fastio": "#7fbfa6",
    "swift-stock": "#5f83b0",
    "swift-fastio": "#2a7f62",
    "swift-1MiB-stock": "#b8860b",
    "swift-1MiB-fastio": "#8b3a62",
    "swift-wide-stock": "#d9a0a0",
    "swift-wide-fastio": "#c0392b",
    "swift-direct": "#9a9a9a",
}
PHASES = ("response", "transfer")


def requests(result: Result) -> Figure | None:
    """The scenarios whose records are there."""
    cases = {}
    for case in result.cases:
        found = {title: records.figures(case.variants[title]) for title in tables.rows(case)}
        found = {title: figures for title, figures in found.items() if figures}
        if found:
            cases[case.title or case.name] = found
    if not cases:
        return None
    figure, axes = pyplot.subplots(
        len(cases), 2 * len(PHASES), figsize=(WIDTH * 2 * len(PHASES), HEIGHT * len(cases) + HEAD), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for row, (title, found) in zip(axes, cases.items(), strict=True):
        for column, phase in enumerate(PHASES):
            _rolling(row[column], {each: figures[phase] for each, figures in found.items()})
            _histogram(row[len(PHASES) + column], {each: figures[phase] for each, figures in found.items()})
        row[0].set_title(title, loc="left", size=9)
    for column, phase in enumerate(PHASES):
        axes[-1][column].set_xlabel(f"request; {phase}, ms, mean of {ROLLING}", size=8)
        axes[-1][len(PHASES) + column].set_xlabel(f"{phase}, ms; requests, up to the {SHOWN}th percentile", size=8)
    shown = [title for title in COLOURS if any(title in found for found in cases.values())]
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=COLOURS[title]) for title in shown]
    figure.legend(handles, shown, loc="outside upper center", ncols=len(shown), fontsize=8)
    return figure


def _rolling(panel, figures: Mapping[str, numpy.ndarray]) -> None:
    for title, values in figures.items():
        panel.plot(statistics.rolling(values, ROLLING), color=COLOURS[title], linewidth=1)
    panel.set_ylim(bottom=0)
    plain(panel)


def _histogram(panel, figures: Mapping[str, numpy.ndarray]) -> None:
    most = max(float(numpy.percentile(values, SHOWN)) for values in figures.values())
    for title, values in figures.items():
        panel.hist(values, bins=BINS, range=(0, most), histtype="step", color=COLOURS[title], linewidth=1)
    plain(panel)


PLOTS = {"requests": Drawing("Each scenario's requests: rolling averages, and how often they took how long", requests)}
