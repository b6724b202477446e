"""Every figure of the kept results: its words, axes and error bars; the overview has all of them."""

import itertools
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("matplotlib", reason="plots need the extra 'plot'")

from matplotlib import pyplot
from matplotlib.axis import Tick
from matplotlib.container import ErrorbarContainer
from matplotlib.text import Text

from benchmarks import documentation
from benchmarks.harness import gains, keep, markup, overview, plots
from benchmarks.harness.suites import Suite
from tests.benchmarks import samples

#: Inches of the highest figure, and points of the smallest letters.
HIGHEST, SMALLEST = 7.0, 7.5
#: Inches of half a page of A4.
HALF_A_PAGE = 11.69 / 2
#: Figures of single rounds, and those whose points have intervals.
WITHOUT_BARS = {"bandwidth", "cpu", ""}


def words(figure: Any) -> list[Text]:
    """All text that can be seen: not the labels of marks beyond the ends of an axis."""
    all_marks, drawn_marks = set(), set()
    axis: Any
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        all_marks |= {label for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()) for label in _labels(tick)}
        drawn_marks |= {label for tick in axis._update_ticks() for label in _labels(tick)}
    found = [each for each in figure.findobj(Text) if each.get_visible() and each.get_text().strip()]
    return [each for each in found if each not in all_marks - drawn_marks]


def _labels(tick: Tick) -> tuple[Text, Text]:
    return tick.label1, tick.label2


def check(figure: Any, name: str) -> None:
    figure.draw_without_rendering()
    assert figure._suptitle is not None and figure._suptitle.get_text().strip(), f"{name}: no finding as its title"
    width, height = figure.get_size_inches()
    assert width == plots.WIDTH and height <= HIGHEST, f"{name}: {width} x {height} inches"
    for axes in figure.axes:
        assert axes.has_data(), f"{name}: an empty panel"
        for axis, own, whole in (
            (axes.xaxis, axes.get_xlabel(), figure._supxlabel),
            (axes.yaxis, axes.get_ylabel(), figure._supylabel),
        ):
            marks = [each.get_text() for each in axis.get_ticklabels() if each.get_text()]
            numbers = [each for each in marks if re.fullmatch(r"[−-]?[\d.]+", each)]
            if marks and len(numbers) == len(marks):
                beside = any(
                    other.get_ylabel() for other in figure.axes if other in axes.get_shared_y_axes().get_siblings(axes)
                )
                assert own or whole or (axis is axes.yaxis and beside), f"{name}: an axis without its unit"
    shown = [(each, each.get_window_extent().shrunk(0.98, 0.9)) for each in words(figure)]
    for text, box in shown:
        assert float(text.get_fontsize()) >= SMALLEST, f"{name}: too small: {text.get_text()!r}"
        inside = box.x0 >= -2 and box.y0 >= -2 and box.x1 <= figure.bbox.x1 + 2 and box.y1 <= figure.bbox.y1 + 2
        assert inside, f"{name}: cut off: {text.get_text()!r}"
    for (one, first), (other, second) in itertools.combinations(shown, 2):
        assert not first.overlaps(second), f"{name}: {one.get_text()!r} over {other.get_text()!r}"


def bars(figure: Any) -> int:
    return sum(isinstance(each, ErrorbarContainer) for axes in figure.axes for each in axes.containers)


def test_each_figure_of_a_page_can_be_read() -> None:
    runs = keep.runs()
    for name in documentation.shown():
        if name.endswith(".png"):
            run, part = documentation.split(Path(name).stem, runs)
            figure: Any = plots.figures(runs[run])[part]()
            try:
                check(figure, name)
                assert bars(figure) or part in WITHOUT_BARS, f"{name}: no error bars"
                drawing = Suite(runs[run].suite).plots().get(part)
                assert not drawing or drawing.caption
            finally:
                pyplot.close(figure)


# --- what is said


def said(stock: list[float], fastio: list[float], **fields) -> str:
    return gains.finding(samples.case({"native-stock": stock, "native-fastio": fastio}, **fields))


def test_a_title_says_what_the_figures_do() -> None:
    assert said([1.0] * 5, [0.5] * 5) == "With fastio, better: native-fastio 2 x"
    assert said([0.5] * 5, [1.0] * 5) == "With fastio, worse: native-fastio 0.5 x"
    # Less is better.
    assert said([1.0] * 5, [0.5] * 5, unit="s") == "With fastio, better: native-fastio 2 x"
    assert said([1.0, 2.0, 3.0] * 2, [1.1, 2.1, 2.9] * 2).startswith("With fastio, no clear difference: native-fastio")
    assert said([1.0, 1.0], [0.5, 0.5]) == "With fastio, too few rounds to tell: native-fastio 2 x"


def test_a_row_is_compared_with_the_same_row_without_fastio() -> None:
    rows = {
        "native-stock": [1.0] * 3,
        "eventlet-stock": [4.0] * 3,
        "native-fastio": [0.5] * 3,
        "eventlet-fastio": [1.0] * 3,
    }
    found = {each.title: each for each in gains.gains(samples.case(rows, baseline="eventlet-stock"))}
    assert {title: (each.against, each.times.ratio, each.mode) for title, each in found.items()} == {
        "native-fastio": ("native-stock", 2.0, "native"), "eventlet-fastio": ("eventlet-stock", 4.0, "eventlet"),
    }  # fmt: skip


def test_where_fastio_is_the_baseline_the_best_of_the_others_is_reported() -> None:
    rows = {"eventlet-fastio": [1.0] * 3, "uvloop": [0.5] * 3, "trio": [2.0] * 3, "reference": [0.1] * 3}
    assert (
        gains.finding(samples.case(rows)) == "Best of 3 by the median is uvloop, against eventlet-fastio: 2 x, better"
    )
    rows["uvloop"] = [3.0] * 3
    assert gains.finding(samples.case(rows)) == "None of 2 others is better than eventlet-fastio"


# --- the overview


@pytest.fixture(scope="module")
def kept():
    return keep.runs()


def drawn(text: str) -> list[str]:
    """The words of a picture, its figures among them."""
    root = ElementTree.fromstring(text.encode())
    return ["".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")]


def test_the_committed_overview_is_of_the_kept_results(kept) -> None:
    committed, made = (drawn(each) for each in (overview.PICTURE.read_text(encoding="utf-8"), overview.svg(kept)))
    assert committed == made, "python -m benchmarks.harness.overview draws it anew"


def test_the_overview_has_all_that_is_compared(kept) -> None:
    labels = [label for label in overview.ROWS if not label.startswith(overview.OTHERS)]
    shown = {(name, each.case.name, each.title) for label in labels for name, each in overview.found(label, kept)}
    missing = {
        (name, each.case.name, each.title)
        for name, result in kept.items()
        for each in gains.of_result(result)
        if "traced" not in each.title
    } - shown
    assert not missing, "a row of benchmarks/harness/overview.py has to pick it"
    assert all(any(overview.found(label, kept)) for label in overview.ROWS), "a row without figures"


def test_the_overview_can_be_read(kept, monkeypatch) -> None:
    def half_a_page(figure: Any) -> None:
        check(figure, "overview")
        assert figure.get_size_inches()[1] <= HALF_A_PAGE

    monkeypatch.setattr(plots, "svg", half_a_page)
    overview.svg(kept)


def test_the_page_lists_what_is_worse(kept) -> None:
    text = "\n".join(markup.rst(each) for each in overview.tables(kept))
    for label in overview.ROWS:
        assert label in text
        for _, each in overview.found(label, kept):
            assert each.verdict != gains.WORSE or each.title in text.partition("Whose median is worse")[2]
