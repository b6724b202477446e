"""Draw many requests at a time: requests/s and times by how many there are, as RESULT-concurrency.png and .svg.

``python -m benchmarks.suites.concurrency.plots RESULT.json -o DIRECTORY``. A column for each release, stock and fastio
on the same axes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402 (the backend comes first: there may be no display)

from benchmarks.harness import plots  # noqa: E402
from benchmarks.harness.results import Result  # noqa: E402
from benchmarks.suites.concurrency.cases import RELEASES  # noqa: E402
from benchmarks.suites.concurrency.tables import SERVERS, figure, levels  # noqa: E402

#: Inches of a panel.
WIDTH, HEIGHT = 4.2, 2.6
STYLES = {"stock": ("#8b3a62", "s", "--"), "fastio": ("#2a7f62", "o", "-")}
#: Figure -> what the axis says, and what one of its units is of the figure's.
PANELS = {
    "operations_per_second": ("requests/s", 1.0),
    "whole_p50_ms": ("p50 of a request, s", 1000.0),
    "whole_p99_ms": ("p99 of a request, s", 1000.0),
}


def plot(result: Result, directory: Path, name: str) -> list[Path]:
    """Draw it; returns the files, none if there are no figures."""
    measured = list(levels(result))
    releases = [release for release in RELEASES if any(own == release for own, _, _ in measured)]
    if not releases:
        return []
    size = (WIDTH * len(releases), HEIGHT * len(PANELS))
    made, axes = pyplot.subplots(len(PANELS), len(releases), figsize=size, squeeze=False, layout="constrained")
    for column, release in enumerate(releases):
        own = [(users, case) for each, users, case in measured if each == release]
        for row, (what, (label, unit)) in enumerate(PANELS.items()):
            panel = axes[row][column]
            for server in SERVERS:
                colour, marker, line = STYLES[server]
                points = [(users, value / unit) for users, case in own if (value := figure(case, server, what))]
                if points:
                    panel.plot(*zip(*points, strict=True), line, color=colour, marker=marker, label=server)
            panel.set_xscale("log")
            panel.set_xticks([users for users, _ in own], [str(users) for users, _ in own])
            panel.minorticks_off()
            panel.set_ylim(bottom=0)
            panel.grid(alpha=0.3)
            panel.set_ylabel(label)
        axes[0][column].set_title(release)
        axes[-1][column].set_xlabel("requests at a time")
    axes[0][0].legend(frameon=False)
    return plots.write(made, directory, f"{name}-concurrency")


def main(arguments: Sequence[str] | None = None) -> int:
    return plots.command(
        plot, arguments, "suites.concurrency.plots", "Draw many requests at a time.", "no downloads at a time in it",
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
