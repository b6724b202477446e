"""Draw a result: ``python -m benchmarks.harness.plots RESULT.json -o DIRECTORY`` makes RESULT.png and RESULT.svg.

One panel per case: a bar up to the median of each row, and every single run as a dot on it. Where the cases are meant
to be seen together (:func:`benchmarks.harness.tables.overview`) they are the cells of a grid.
"""

import argparse
import io
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402 (the backend comes first: there may be no display)
from matplotlib.figure import Figure  # noqa: E402

from benchmarks.harness import results  # noqa: E402
from benchmarks.harness.results import CaseResult, Result  # noqa: E402
from benchmarks.harness.suites import Suite  # noqa: E402
from benchmarks.harness.tables import REFERENCE, better, number, overview_cases  # noqa: E402
from fastio import terminal  # noqa: E402

#: Inches.
WIDTH = 9
ROW_HEIGHT = 0.32
HEAD_HEIGHT = 1.1

#: Of an SVG for a page: its text is text, and the same figure gives the same file.
FOR_PAGES: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "fastio"}

#: Of the cells of an overview, and of what is left of them.
CELL_WIDTH, CELL_HEIGHT, MARGIN = 3.2, 1.05, 1.2

#: A row whose name says that it is ours, one that is a limit, all others.
COLOURS = {"fastio": "#2a7f62", "limit": "#b8b8b8", "": "#7f9fc4"}

#: The bars of each cell of an overview: light ones natively, dark ones under eventlet.
MODE_COLOURS = {
    "native-stock": "#b3c6de",
    "native-fastio": "#7fbfa6",
    "eventlet-stock": "#5f83b0",
    "eventlet-fastio": "#2a7f62",
    "reference": "#c4c4c4",
}


def plot(result: Result, directory: Path, name: str) -> list[Path]:
    """Draw all cases into one figure and write it as ``name`` with .png and .svg; returns the files."""
    if overview_cases(result):
        return write(overview_figure(result), directory, name)
    shown = [case for case in result.cases if case.measured()]
    if not shown:
        return []
    heights = [HEAD_HEIGHT + ROW_HEIGHT * len(_rows(case)) for case in shown]
    figure, axes = pyplot.subplots(
        len(shown), 1, figsize=(WIDTH, sum(heights)), height_ratios=heights, squeeze=False, layout="constrained"
    )  # fmt: skip
    for panel, case in zip(axes[:, 0], shown, strict=True):
        _draw(panel, case)
        panel.set_title(case.title or case.name, loc="left", size=10)
    return write(figure, directory, name)


@dataclass(frozen=True)
class Drawing:
    """What only one suite draws. Its ``plots.py`` has a dictionary of them, ``PLOTS``, by the end of the file's name.

    :param caption: what it shows
    :param figure: draws it; None if the result does not have what is drawn
    :param lines: what can be seen in it, for those who cannot see it
    """

    caption: str
    figure: Callable[[Result], Figure | None]
    lines: Callable[[Result], Iterable[str]] = lambda result: ()


def draw(result: Result, directory: Path, name: str, part: str | None = None) -> list[Path]:
    """Draw the cases, as ``name``, and what only the suite draws, as ``name-PLOT``; returns the files.

    :param part: draw that PLOT only, or the cases only if it is empty
    """
    paths = [] if part else plot(result, directory, name)
    for own, drawing in Suite(result.suite).plots().items():
        figure = drawing.figure(result) if part in (None, own) else None
        if figure is not None:
            paths += write(figure, directory, f"{name}-{own}")
    return paths


def plain(panel: Any) -> None:
    """A small panel: no frame at its top and its right, small figures."""
    panel.spines[["top", "right"]].set_visible(False)
    panel.tick_params(labelsize=7)


def case_figure(case: CaseResult) -> Figure:
    """The panel of one case by itself, without its title."""
    size = WIDTH, HEAD_HEIGHT + ROW_HEIGHT * len(_rows(case))
    figure, panel = pyplot.subplots(figsize=size, layout="constrained")
    _draw(panel, case)
    return figure


def svg(figure: Figure) -> str:
    """A figure as the text of an SVG for a page; closes it."""
    stream = io.StringIO()
    with matplotlib.rc_context(FOR_PAGES):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    pyplot.close(figure)
    return stream.getvalue()


def write(figure: Figure, directory: Path, name: str) -> list[Path]:
    """A figure as ``name.png`` and ``name.svg`` in a directory, which is made; closes it."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / f"{name}.{kind}" for kind in ("png", "svg")]
    for path in paths:
        figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return paths


def overview_figure(result: Result) -> Figure:
    """A grid: a column for each panel, a row for each label; every cell has its own scale."""
    cells = {(case.label, case.panel): case for case in overview_cases(result)}
    labels, panels = (list(dict.fromkeys(keys)) for keys in zip(*cells, strict=True))
    size = CELL_WIDTH * len(panels) + MARGIN, CELL_HEIGHT * len(labels) + HEAD_HEIGHT
    figure, axes = pyplot.subplots(len(labels), len(panels), figsize=size, squeeze=False, layout="constrained")
    for row, label in zip(axes, labels, strict=True):
        for cell, panel in zip(row, panels, strict=True):
            cell.spines[:].set_visible(False)
            cell.set_yticks([])
            cell.set_xticks([])
            if (label, panel) in cells:
                _draw_cell(cell, cells[label, panel])
        row[0].set_ylabel(label.replace(", ", ",\n"), size=9, rotation=0, ha="right", va="center", labelpad=8)
    for cell, panel in zip(axes[0], panels, strict=True):
        cell.set_title(panel, size=10)
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=colour) for colour in MODE_COLOURS.values()]
    figure.legend(handles, list(MODE_COLOURS), loc="outside upper center", ncols=len(handles), fontsize=8)
    unit = next(iter(cells.values())).unit
    figure.supxlabel(f"{unit}, more is better; in brackets: times better than stock", size=8)
    return figure


def _draw_cell(cell, case: CaseResult) -> None:
    titles = [title for title in MODE_COLOURS if case.figures(title)]
    if not titles:
        cell.annotate("no figures", (0, 0), size=7)
        return
    _bars(cell, case, {title: MODE_COLOURS[title] for title in titles}, 0.8, (2, 7, 4), plain=REFERENCE)
    # Room for the numbers; the bars tell the scale.
    cell.margins(x=0.4)
    cell.set_xlim(left=0)
    cell.invert_yaxis()
    cell.spines["left"].set_visible(True)


def _bars(
    panel, case: CaseResult, colours: dict[str, str], height: float, sizes: tuple[int, int, int], plain: str = ""
) -> None:  # fmt: skip
    """A bar up to the median of each of the rows, a dot for each run, and the figures.

    :param sizes: of a dot, of the text, and how far it is off
    :param plain: a row that is not compared
    """
    dot, text_size, off = sizes
    medians = [case.median(title) for title in colours]
    panel.barh(range(len(colours)), medians, color=[*colours.values()], height=height)
    for position, (title, middle) in enumerate(zip(colours, medians, strict=True)):
        figures = case.figures(title)
        panel.plot(figures, [position] * len(figures), "o", markersize=dot, color="black", alpha=0.4)
        ratio = better(case, title) if title not in (plain, case.against(title)) else None
        text = number(middle) + (f" ({ratio.ratio:.3g} x)" if ratio else "")
        place = (max(figures), position)
        panel.annotate(text, place, xytext=(off, 0), textcoords="offset points", va="center", size=text_size)


def _rows(case: CaseResult) -> list[str]:
    return [title for title in case.variants if case.figures(title)]


def _draw(panel, case: CaseResult) -> None:
    titles = _rows(case)
    colours = {each: next(found for word, found in COLOURS.items() if word in each) for each in titles}
    _bars(panel, case, colours, 0.7, (3, 8, 6))
    panel.margins(x=0.15)
    panel.set_yticks(range(len(titles)), titles, size=9)
    panel.invert_yaxis()
    direction = "more is better" if case.more_is_better else "less is better"
    panel.set_xlabel(f"{case.unit}, {direction}; in brackets: times better than {case.baseline}", size=8)
    panel.spines[["top", "right"]].set_visible(False)


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.harness.plots", description="Draw a benchmark result.")
    parser.add_argument("result", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("."), metavar="DIRECTORY")
    chosen = parser.parse_args(arguments)
    try:
        paths = draw(results.read(chosen.result), chosen.output, chosen.result.stem)
    except (OSError, results.ResultError) as error:
        print(error, file=sys.stderr)
        return 2
    if not paths:
        print(f"{chosen.result}: no figures in it", file=sys.stderr)
        return 1
    for path in paths:
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
