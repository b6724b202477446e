"""Disk against Swift: how long requests take, by scenario."""

from collections.abc import Callable
from typing import Any

from matplotlib import pyplot
from matplotlib.figure import Figure

from benchmarks.harness import plots
from benchmarks.harness.plots import Drawing
from benchmarks.harness.results import Result
from benchmarks.harness.tables import number
from benchmarks.suites.disk_swift.records import PHASES

#: Inches of a scenario's row of points.
ROW = 0.42

COLOURS = {
    "disk-stock": "#8fa9cc",
    "disk-fastio": "#7fbfa6",
    "swift-stock": "#33608f",
    "swift-fastio": "#1f6f55",
    "swift-1MiB-stock": "#b8860b",
    "swift-1MiB-fastio": "#8b3a62",
    "swift-wide-stock": "#d98880",
    "swift-wide-fastio": "#c0392b",
    "swift-direct": "#8a8a8a",
}
#: Behind every other row, whose points belong together.
BAND = "#f1f1f1"
MARKERS = {"stock": "s", "fastio": "o", "direct": "D"}


def medians(phase: str) -> Callable[[Result], Figure | None]:
    """How long a phase takes, a row for each scenario that the result has the requests of."""

    def figure(result: Result) -> Figure | None:
        cases = [case for case in result.cases if any(phase in own for own in case.summary.values())]
        if not cases:
            return None
        size = plots.WIDTH, plots.HEAD_HEIGHT + 0.6 + ROW * len(cases)
        made, panel = pyplot.subplots(figsize=size, layout="constrained")
        shown = [title for title in COLOURS if any(title in case.summary for case in cases)]
        for position, case in enumerate(cases):
            for title in (title for title in shown if title in case.summary):
                middle, low, high = case.summary[title][phase]["median"]
                at = position + 0.75 * (shown.index(title) / max(1, len(shown) - 1) - 0.5)
                panel.plot([low, high], [at, at], color=COLOURS[title], linewidth=1.2)
                marker = MARKERS[title.rpartition("-")[2]]
                label = title if shown.count(title) and title not in panel.get_legend_handles_labels()[1] else None
                panel.plot([middle], [at], marker, color=COLOURS[title], markersize=4, linestyle="", label=label)
        panel.set_xscale("log")
        low, high = panel.get_xlim()
        # As many as there is room for.
        firsts = (1, 2, 5) if high / low < 200 else (1,)
        marks = [first * ten for ten in (0.1, 1, 10, 100, 1000, 10000) for first in firsts]
        panel.set_xticks([mark for mark in marks if low <= mark <= high])
        panel.xaxis.set_major_formatter("{x:g}")
        panel.minorticks_off()
        panel.set_yticks(range(len(cases)), [case.title or case.name for case in cases])
        panel.set_ylim(len(cases) - 0.5, -0.5)
        panel.grid(axis="x", alpha=0.3)
        for position in range(1, len(cases), 2):
            panel.axhspan(position - 0.5, position + 0.5, color=BAND, zorder=0, linewidth=0)
        plots.plain(panel)
        made.legend(loc="outside right center", fontsize=plots.SIZE, frameon=False)
        plots.below(made, "ms, log scale; marks: medians of the requests, lines: their 95 % intervals")
        plots.head(made, _finding(cases, phase), "")
        return made

    return figure


def _finding(cases: Any, phase: str) -> str:
    def ratios(above: str, below: str) -> list[float]:
        both = [case.summary for case in cases if above in case.summary and below in case.summary]
        return [each[above][phase]["median"][0] / each[below][phase]["median"][0] for each in both]

    parts = []
    for above, below, words in (
        ("swift-stock", "disk-stock", "from Swift it takes {} of the time from disk"),
        ("swift-fastio", "swift-stock", "from Swift with fastio {} of the time of stock"),
    ):
        found = ratios(above, below)
        if found:
            parts.append(words.format(f"{number(min(found))} to {number(max(found))} x"))
    name = PHASES[phase]
    return f"{name[:1].upper()}{name[1:]}: {'; '.join(parts) or 'nothing to compare'}"


PLOTS = {phase: Drawing(f"{words}: medians by scenario", medians(phase)) for phase, words in PHASES.items()}
