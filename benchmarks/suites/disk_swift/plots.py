"""Draw disk against Swift: rolling averages over the requests and histograms, as RESULT-requests.png and .svg.

``python -m benchmarks.suites.disk_swift.plots RESULT.json -o DIRECTORY``. One row per scenario; disk and Swift, stock
and fastio on the same axes. It reads the records of the runs, so it can be done as long as they are there.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy  # noqa: E402 (the backend comes first: there may be no display)
from matplotlib import pyplot  # noqa: E402

from benchmarks.harness import plots, statistics  # noqa: E402
from benchmarks.harness.results import Result  # noqa: E402
from benchmarks.load import analysis  # noqa: E402
from benchmarks.suites.disk_swift import records, tables  # noqa: E402

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


def plot(result: Result, directory: Path, name: str) -> list[Path]:
    """Draw the scenarios whose records are there; returns the files, none if there are none."""
    cases = {}
    for case in result.cases:
        found = {title: records.figures(case.variants[title]) for title in tables.rows(case)}
        found = {title: figures for title, figures in found.items() if figures}
        if found:
            cases[case.title or case.name] = found
    if not cases:
        return []
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
    return plots.write(figure, directory, f"{name}-requests")


def _rolling(panel, figures: Mapping[str, numpy.ndarray]) -> None:
    for title, values in figures.items():
        panel.plot(statistics.rolling(values, ROLLING), color=COLOURS[title], linewidth=1)
    panel.set_ylim(bottom=0)
    _plain(panel)


def _histogram(panel, figures: Mapping[str, numpy.ndarray]) -> None:
    most = max(float(numpy.percentile(values, SHOWN)) for values in figures.values())
    for title, values in figures.items():
        panel.hist(values, bins=BINS, range=(0, most), histtype="step", color=COLOURS[title], linewidth=1)
    _plain(panel)


def _plain(panel) -> None:
    panel.spines[["top", "right"]].set_visible(False)
    panel.tick_params(labelsize=7)


def main(arguments: Sequence[str] | None = None) -> int:
    return plots.command(
        plot, arguments, "suites.disk_swift.plots", "Draw the requests of disk against Swift.",
        "its records are not there",
        (analysis.RunError,),
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
