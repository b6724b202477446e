"""Draw the CPU load over time, as RESULT-load.png and .svg.

``python -m benchmarks.suites.glance_client.plots RESULT -o DIRECTORY``. One column per case, one panel per row whose
last run has the samples (:mod:`benchmarks.suites.glance_client.workload`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402 (the backend comes first: there may be no display)

from benchmarks.harness import plots  # noqa: E402
from benchmarks.harness.results import CaseResult, Result  # noqa: E402

#: Inches.
WIDTH, HEIGHT, HEAD = 4.5, 0.75, 1.0


def plot(result: Result, directory: Path, name: str) -> list[Path]:
    """Draw the cases that have samples; returns the files, none if there are no samples."""
    shown = [case for case in result.cases if _rows(case)]
    if not shown:
        return []
    titles = list(dict.fromkeys(title for case in shown for title in _rows(case)))
    size = WIDTH * len(shown) + 1, HEIGHT * len(titles) + HEAD
    figure, axes = pyplot.subplots(
        len(titles), len(shown), figsize=size, sharex="col", sharey=True, squeeze=False, layout="constrained"
    )
    for title, row in zip(titles, axes, strict=True):
        row[0].set_ylabel(title, size=8, rotation=0, ha="right", va="center")
        for panel, case in zip(row, shown, strict=True):
            panel.spines[["top", "right"]].set_visible(False)
            panel.tick_params(labelsize=7)
            if title in _rows(case):
                colour = next(colour for word, colour in plots.COLOURS.items() if word in title)
                _draw(panel, case.variants[title].details["load"], colour)
    for panel, case in zip(axes[0], shown, strict=True):
        panel.set_title(case.title or case.name, loc="left", size=9)
        panel.set_xlim(left=0)
    axes[0][0].set_ylim(bottom=0)
    figure.supxlabel("seconds; CPU load of the client, percent of one processor", size=8)
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / f"{name}-load.{kind}" for kind in ("png", "svg")]
    for path in paths:
        figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return paths


def _draw(panel, samples: Sequence[Sequence[float]], colour: str) -> None:
    """Steps: each sample is of the time since the one before."""
    seconds, percent = zip(*samples, strict=True)
    panel.fill_between([0, *seconds], [percent[0], *percent], step="pre", color=colour, linewidth=0)


def _rows(case: CaseResult) -> list[str]:
    return [title for title, row in case.variants.items() if row.details.get("load")]


def main(arguments: Sequence[str] | None = None) -> int:
    return plots.command(
        plot, arguments, "suites.glance_client.plots", "Draw the CPU load over time.", "no row has the load over time",
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
