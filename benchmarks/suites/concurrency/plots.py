"""Many requests at a time: requests/s and times by how many there are.

A column for each service, stock and fastio on the same axes.
"""

from matplotlib import pyplot
from matplotlib.figure import Figure

from benchmarks.harness.plots import Drawing
from benchmarks.harness.results import Result
from benchmarks.suites.concurrency.bench_concurrency import SERVICES
from benchmarks.suites.concurrency.tables import SERVERS, levels

#: Inches of a panel.
WIDTH, HEIGHT = 4.2, 2.6
STYLES = {"stock": ("#8b3a62", "s", "--"), "fastio": ("#2a7f62", "o", "-")}
#: Figure -> what the axis says, and what one of its units is of the figure's.
PANELS = {
    "operations_per_second": ("requests/s", 1.0),
    "whole_p50_ms": ("p50 of a request, s", 1000.0),
    "whole_p99_ms": ("p99 of a request, s", 1000.0),
}


def figure(result: Result) -> Figure | None:
    measured = list(levels(result))
    services = [service for service in SERVICES if any(own == service for own, _, _ in measured)]
    if not services:
        return None
    size = (WIDTH * len(services), HEIGHT * len(PANELS))
    made, axes = pyplot.subplots(len(PANELS), len(services), figsize=size, squeeze=False, layout="constrained")
    for column, service in enumerate(services):
        own = [(users, case) for each, users, case in measured if each == service]
        for row, (what, (label, unit)) in enumerate(PANELS.items()):
            panel = axes[row][column]
            for server in SERVERS:
                colour, marker, line = STYLES[server]
                points = [(users, value / unit) for users, case in own if (value := case.median(server, what))]
                if points:
                    panel.plot(*zip(*points, strict=True), line, color=colour, marker=marker, label=server)
            panel.set_xscale("log")
            panel.set_xticks([users for users, _ in own], [str(users) for users, _ in own])
            panel.minorticks_off()
            panel.set_ylim(bottom=0)
            panel.grid(alpha=0.3)
            panel.set_ylabel(label)
        axes[0][column].set_title(service)
        axes[-1][column].set_xlabel("requests at a time")
    axes[0][0].legend(frameon=False)
    return made


PLOTS = {"concurrency": Drawing("Requests/s and times by how many requests there are at a time", figure)}
