"""Many concurrent requests: a figure each for requests/s and for the times of a request, by how many there are."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib import pyplot, ticker
from matplotlib.figure import Figure

from benchmarks.harness import plots, statistics
from benchmarks.harness.plots import Drawing
from benchmarks.harness.results import Result
from benchmarks.harness.tables import number
from benchmarks.suites.concurrency.bench_concurrency import SERVERS, SERVICES, levels

HEIGHT = 3.0
STYLES = {"stock": ("#8b3a62", "s", "--"), "fastio": ("#2a7f62", "o", "-")}


def lines(panel: Any, points: Mapping[str, Sequence[tuple[float, Sequence[float]]]], apart: float) -> None:
    """The medians of each server with their spread, so far apart that neither hides the other's error bar."""
    for (server, (colour, marker, line)), off in zip(STYLES.items(), (1 - apart, 1 + apart), strict=True):
        middles = [statistics.median(values) for _, values in points[server]]
        places = [place * off for place, _ in points[server]]
        panel.plot(places, middles, line, color=colour, marker=marker, label=server)
        for place, middle, (_, values) in zip(places, middles, points[server], strict=True):
            plots.spread(panel, place, middle, values, upright=True)


def _drawing(what: str, caption: str, label: str, unit: float, more_is_better: bool) -> Drawing:
    """:param unit: what one unit of the axis is of the figure's"""

    def figure(result: Result) -> Figure | None:
        measured = [each for each in levels(result) if all(each[2].figures(server, what) for server in SERVERS)]
        services = [service for service in SERVICES if any(own == service for own, _, _ in measured)]
        if not services:
            return None
        made, axes = pyplot.subplots(
            1, len(services), figsize=(plots.WIDTH, HEIGHT), squeeze=False, sharey=True, layout="constrained"
        )
        ratios = []
        for panel, service in zip(axes[0], services, strict=True):
            own = [(users, case) for each, users, case in measured if each == service]
            points = {
                server: [(users, [value / unit for value in case.figures(server, what)]) for users, case in own]
                for server in SERVERS
            }
            lines(panel, points, 0.03)
            pairs = [[case.median(server, what) or 0.0 for server in SERVERS] for _, case in own]
            ratios += [fast / stock if more_is_better else stock / fast for stock, fast in pairs if stock and fast]
            panel.set_xscale("log")
            panel.set_xticks([users for users, _ in own], [str(users) for users, _ in own])
            if more_is_better:
                panel.set_ylim(bottom=0)
            else:
                # From a fraction of a second to a minute.
                panel.set_yscale("log")
                panel.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
                panel.yaxis.set_major_formatter("{x:g}")
            panel.minorticks_off()
            panel.grid(alpha=0.3)
            panel.set_xlabel(f"{service}: concurrent requests", size=plots.SIZE)
            plots.plain(panel)
        axes[0][0].set_ylabel(label, size=plots.SIZE)
        axes[0][0].legend(frameon=False, fontsize=plots.SIZE)
        better = sum(ratio > 1 for ratio in ratios)
        finding = (
            f"{caption}: fastio's median is better at {better} of {len(ratios)} levels, "
            f"{number(min(ratios))} to {number(max(ratios))} times stock's"
        )
        rounds = min(case.rounds(server) for _, _, case in measured for server in SERVERS)
        plots.head(made, finding, f"Medians of {rounds} rounds; lines: from the lowest to the highest round")
        return made

    return Drawing(caption, figure)


PLOTS = {
    "rate": _drawing("operations_per_second", "Requests/s", "requests/s", 1.0, True),
    "p99": _drawing("whole_p99_ms", "Time of a request, p99", "s, log scale", 1000.0, False),
}
