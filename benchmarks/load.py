"""Draw the CPU load over time: ``python -m benchmarks.load RESULT.json -o DIRECTORY`` makes RESULT-load.png and .svg.

One panel per case, one line per row whose last run has the samples (:mod:`benchmarks.workloads.glance_client`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402 (the backend comes first: there may be no display)

from benchmarks import results  # noqa: E402
from benchmarks.results import CaseResult, Result  # noqa: E402

#: Inches.
WIDTH, HEIGHT = 9, 4.5


def plot(result: Result, directory: Path, name: str) -> list[Path]:
    """Draw the cases that have samples; returns the files, none if there are no samples."""
    shown = [case for case in result.cases if _rows(case)]
    if not shown:
        return []
    figure, axes = pyplot.subplots(
        len(shown), 1, figsize=(WIDTH, HEIGHT * len(shown)), squeeze=False, layout="constrained"
    )
    for panel, case in zip(axes[:, 0], shown, strict=True):
        for title in _rows(case):
            seconds, percent = zip(*case.variants[title].details["load"], strict=True)
            style = "--" if "unverified" in title else "-"
            panel.plot([0, *seconds], [percent[0], *percent], style, label=title, drawstyle="steps-pre", linewidth=1.2)
        panel.set_title(case.title or case.name, loc="left", size=10)
        panel.set_xlabel("seconds", size=8)
        panel.set_ylabel("CPU load of the client, % of one processor", size=8)
        panel.set_ylim(bottom=0)
        panel.set_xlim(left=0)
        panel.legend(fontsize=7, loc="upper right")
        panel.spines[["top", "right"]].set_visible(False)
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / f"{name}-load.{kind}" for kind in ("png", "svg")]
    for path in paths:
        figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return paths


def _rows(case: CaseResult) -> list[str]:
    return [title for title, row in case.variants.items() if row.details.get("load")]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description="Draw the CPU load over time.")
    parser.add_argument("result", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("."), metavar="DIRECTORY")
    chosen = parser.parse_args(arguments)
    try:
        paths = plot(results.read(chosen.result), chosen.output, chosen.result.stem)
    except (OSError, results.ResultError) as error:
        print(error, file=sys.stderr)
        return 2
    if not paths:
        print(f"{chosen.result}: no row has the load over time", file=sys.stderr)
        return 1
    for path in paths:
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
