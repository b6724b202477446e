"""Draw a result: one figure for each question, in the measured unit, for the documentation and for reports.

``RESULT`` shows what fastio gains and loses in each case, ``RESULT-CASE`` the
rows of a case, and ``RESULT-PLOT`` what only the suite draws. The title of a figure is what it shows, and it is
computed from the figures. A figure is as wide as a page, with letters that can be read at that width.
"""

import io
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import markers, pyplot, ticker  # noqa: E402 (the backend comes first: there may be no display)
from matplotlib.figure import Figure  # noqa: E402

from benchmarks.harness import gains  # noqa: E402
from benchmarks.harness.gains import FEW, Gain  # noqa: E402
from benchmarks.harness.results import CaseResult, Result  # noqa: E402
from benchmarks.harness.suites import Suite  # noqa: E402
from benchmarks.harness.tables import number  # noqa: E402

#: Inches of a figure, of the title, of a row of bars, and of a row of points.
WIDTH, HEAD_HEIGHT, ROW_HEIGHT, POINT_HEIGHT = 7.0, 0.95, 0.24, 0.21
#: Of a row of points where there are many, and of one line of a label with several.
DENSE_HEIGHT, LINE_HEIGHT = 0.125, 0.155
#: Points of the title and of all other text.
TITLE_SIZE, SIZE = 9, 8
#: Letters of a line of the title, of what is below it, and of a label.
TITLE_LETTERS, QUESTION_LETTERS, LABEL_LETTERS = 84, 104, 64
#: Points from one column of numbers beside an axis to the next.
ASIDE = 56
#: More rows than this are no figure.
MOST_ROWS = 24

#: Of an SVG for a page: its text is text, and the same figure gives the same file.
FOR_PAGES: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "fastio"}

#: A row whose name says that it is ours, one that others are held against, all others.
COLOURS = {"fastio": "#2a7f62", "reference": "#c4c4c4", "limit": "#8a8a8a", "": "#7f9fc4"}

#: Of the points of each mode: what it is called, colour, marker, and how far off the middle of its row.
MODES = {
    "native": ("■ native", "#33608f", "s", -0.17),
    "eventlet": ("● eventlet", "#1f8a63", "o", 0.17),
    "": ("", "#33608f", "D", 0.0),
}
WORSE_COLOUR = "#f6dcd8"
#: Marks of an axis of ratios.
_RATIOS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
_TENS = [10, 100, 1000]


@dataclass(frozen=True)
class Drawing:
    """A plot of one suite only. Its ``plots.py`` has a dictionary of them, ``PLOTS``, by the end of the file's name.

    :param caption: its content
    :param figure: draws it; None if the result does not have what is drawn
    """

    caption: str
    figure: Callable[[Result], Figure | None]


def figures(result: Result) -> dict[str, Callable[[], Figure | None]]:
    """Return the functions that draw a result's figures, by the end of their names; None where nothing is drawn."""
    made: dict[str, Callable[[], Figure | None]] = {"": lambda: result_figure(result)}
    for case in result.cases:
        made[case.name] = lambda case=case: case_figure(case)  # type: ignore[misc]
    for name, drawing in Suite(result.suite).plots().items():
        made[name] = lambda drawing=drawing: drawing.figure(result)  # type: ignore[misc]
    return made


def draw(result: Result, directory: Path, name: str, part: str | None = None) -> list[Path]:
    """Draw the figures of a result as ``name``, ``name-CASE`` and ``name-PLOT``; returns the files.

    :param part: draw that one only
    """
    paths = []
    for end, make in figures(result).items():
        figure = make() if part in (None, end) else None
        if figure is not None:
            paths.append(write(figure, directory, f"{name}-{end}" if end else name))
    return paths


def head(figure: Figure, finding: str, question: str) -> None:
    """Title a figure: what it shows, and below it what was asked."""
    figure.suptitle(folded(finding, TITLE_LETTERS), x=0.01, ha="left", size=TITLE_SIZE, weight="bold")
    figure.axes[0].set_title(folded(question, QUESTION_LETTERS), loc="left", size=SIZE)


def folded(text: str, letters: int) -> str:
    """In lines of so many letters at the most; no name with a hyphen is parted."""
    return textwrap.fill(text, letters, break_on_hyphens=False)


def below(figure: Figure, text: str) -> None:
    """Return the label of the horizontal axis, with its unit."""
    figure.supxlabel(folded(text, QUESTION_LETTERS), x=0.01, ha="left", size=SIZE)


def plain(panel: Any) -> None:
    """No frame at its top and its right, and letters that can be read."""
    panel.spines[["top", "right"]].set_visible(False)
    panel.tick_params(labelsize=SIZE)


def case_figure(case: CaseResult) -> Figure | None:
    """The rows of a case: a bar up to the median of each, and how far its rounds are from each other."""
    titles = [title for title in case.variants if case.figures(title)]
    finding = gains.finding(case)
    if not finding or not 2 <= len(titles) <= MOST_ROWS:
        return None
    figure, panel = pyplot.subplots(figsize=(WIDTH, HEAD_HEIGHT + ROW_HEIGHT * len(titles)), layout="constrained")
    rounds = {title: case.figures(title) for title in titles}
    times = {each.title: each for each in gains.compared(case)}
    middles = [case.median(title) or 0.0 for title in titles]
    colours = [next(found for word, found in COLOURS.items() if word in title) for title in titles]
    panel.barh(range(len(titles)), middles, color=colours, height=0.7)
    for position, (title, middle) in enumerate(zip(titles, middles, strict=True)):
        spread(panel, position, middle, rounds[title])
        text = f"{number(middle)} ({number(times[title].times.ratio)} x)" if title in times else number(middle)
        place = max(rounds[title]), position
        panel.annotate(text, place, xytext=(5, 0), textcoords="offset points", va="center", size=SIZE)
    panel.set_xlim(0, 1.3 * max(map(max, rounds.values())))
    panel.set_ylim(len(titles) - 0.4, -0.6)
    panel.set_yticks(range(len(titles)), titles)
    panel.xaxis.set_major_locator(ticker.MaxNLocator(6))
    many = any(len(own) > 1 for own in rounds.values())
    error = "; lines: from the lowest to the highest round" if many else "; one round"
    direction = "more is better" if case.more_is_better else "less is better"
    bases = dict.fromkeys(each.against for each in times.values())
    against = f"; (x): times better than {next(iter(bases)) if len(bases) == 1 else 'the same row without it'}"
    below(figure, f"{case.unit}: {direction}; bars: medians{error}{against * bool(bases)}")
    plain(panel)
    head(figure, finding, case.title or case.name)
    return figure


def spread(panel: Any, position: float, middle: float, rounds: Sequence[float], upright: bool = False) -> None:
    """An error bar, from the lowest to the highest of the rounds, if there are several."""
    if len(rounds) > 1:
        # A median is rounded, and may be beyond figures that hardly differ.
        error = [[max(0.0, middle - min(rounds))], [max(0.0, max(rounds) - middle)]]
        bar = {"yerr": error} if upright else {"xerr": error}
        place = (position, middle) if upright else (middle, position)
        panel.errorbar(*place, **bar, fmt="none", ecolor="black", elinewidth=0.9, capsize=2)


#: Rows of points: a label, and by mode what was found.
Rows = Mapping[str, Sequence[Gain]]


def result_figure(result: Result) -> Figure | None:
    """Draw fastio's gains and losses, a row for each case; None if there are not several cases to be compared."""
    rows: dict[str, list[Gain]] = {}
    for each in gains.of_result(result):
        rows.setdefault(_label(each), []).append(each)
    if len({each.case.name for found in rows.values() for each in found}) < 2:
        return None
    found = [each for found in rows.values() for each in found]
    return gains_figure(rows, gains.told(found, lambda each: ", ".join(filter(None, (_label(each), each.mode)))))


def _label(each: Gain) -> str:
    """The case, and the row if its name says more than the mode."""
    more = each.title.removeprefix(f"{each.mode}-").replace("fastio", "", 1).strip(", -")
    named = each.case.title or each.case.name
    return f"{named}; {more}" if more else named


def gains_figure(rows: Rows, finding: str) -> Figure:
    """How many times better than stock each row is, with 95 % intervals, on one axis of ratios."""
    labels = [folded(label, LABEL_LETTERS) for label in rows]
    lines = 1 + max(label.count("\n") for label in labels)
    row = max(POINT_HEIGHT if len(rows) <= MOST_ROWS else DENSE_HEIGHT, LINE_HEIGHT * lines if lines > 1 else 0)
    inches = row * len(rows) + HEAD_HEIGHT + 0.35
    figure, panel = pyplot.subplots(figsize=(WIDTH, inches), layout="constrained")
    modes = [each for each in MODES if any(point.mode == each for found in rows.values() for point in found)]
    low, high = _range(point for found in rows.values() for point in found)
    for position, found in enumerate(rows.values()):
        for each in modes:
            own = [point for point in found if point.mode == each]
            _points(panel, position, own, modes.index(each), modes, (low, high))
    panel.set_xscale("log")
    panel.set_xlim(low, high)
    panel.axvspan(low, 1, color=WORSE_COLOUR, zorder=0, linewidth=0)
    panel.axvline(1, color="black", linewidth=0.8, zorder=1)
    # As many as there is room for.
    marks = [mark for mark in _RATIOS if low <= mark <= high and (high / low < 500 or mark < 10 or mark in _TENS)]
    panel.set_xticks(marks)
    panel.xaxis.set_major_formatter("{x:g}")
    panel.minorticks_off()
    panel.set_ylim(len(rows) - 0.4, -0.6)
    panel.set_yticks(range(len(rows)), labels)
    panel.grid(axis="y", color="#e4e4e4", linewidth=0.6, zorder=0)
    below(
        figure,
        "times better than without fastio, log scale; shaded: worse; lines: 95 % intervals; hollow: fewer than "
        f"{gains.FEW_ROUNDS} rounds, lines: their range; arrows: the line goes on",
    )
    plain(panel)
    panel.tick_params(axis="y", length=0)
    for column, each in enumerate(modes):
        _aside(panel, -1, column, MODES[each][0])
    head(figure, finding, "")
    return figure


def _points(
    panel: Any, position: int, own: Sequence[Gain], column: int, modes: Sequence[str], ends: tuple[float, float]
) -> None:
    """The points of a mode, with an arrow where an interval goes on beyond the axis."""
    _, colour, marker, off = MODES[modes[column]]
    at = position + (off if len(modes) > 1 else 0.0)
    for each in own:
        hollow = "white" if each.verdict == FEW else colour
        panel.plot(each.times[1:], [at, at], color=colour, linewidth=1, zorder=2)
        panel.plot([each.times.ratio], [at], marker, color=colour, markerfacecolor=hollow, markersize=4.5, zorder=3)
        low, high = ends[0] - each.times.low, each.times.high - ends[1]
        for end, arrow, beyond in ((ends[0], markers.CARETLEFT, low), (ends[1], markers.CARETRIGHT, high)):
            if beyond > 0:
                panel.plot([end], [at], marker=arrow, color=colour, markersize=5, zorder=4)
    if own:
        ratios = [each.times.ratio for each in own]
        text = number(min(ratios)) if len(own) == 1 else f"{number(min(ratios))}–{number(max(ratios))}"
        _aside(panel, position, column, text)


def _aside(panel: Any, position: int, column: int, text: str) -> None:
    """Text to the right of the axis, in one of two columns."""
    panel.annotate(
        text, (1, position), xytext=(5 + ASIDE * column, 0), xycoords=("axes fraction", "data"),
        textcoords="offset points", va="center", size=SIZE, annotation_clip=False,
    )  # fmt: skip


def _range(points: Iterable[Gain]) -> tuple[float, float]:
    """Of the axis: a wide interval may be cut off, a point may not."""
    ratios = [each.times.ratio for each in points]
    return min(0.5, min(ratios) / 1.3), max(2.0, max(ratios) * 1.3)


def svg(figure: Figure) -> str:
    """A figure as the text of an SVG for a page; closes it."""
    stream = io.StringIO()
    with matplotlib.rc_context(FOR_PAGES):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    pyplot.close(figure)
    return stream.getvalue()


def write(figure: Figure, directory: Path, name: str) -> Path:
    """A figure as ``name.png`` in a directory, which is made; closes it."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.png"
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return path
