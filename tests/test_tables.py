"""The one table, in each way in which it is printed."""

import io
import re

import pytest

from fastio.tables import Table

TABLE = Table("Times <of> one run", ["", "what", "ms"], [["a|b", "[by peer]", "1.5"], ["c\nd", "", "–"]], ["p < 1"])


@pytest.mark.parametrize(
    ("cells", "right"),
    [
        (["1", "2"], True), (["1.5 ms", "–", "-", ""], True), (["≥ 3", "noise"], False), (["-3", "±4", "failed"], True),
        (["a1"], False), (["–"], False), ([], False),
    ],
)  # fmt: skip
def test_columns_of_figures(cells, right):
    assert Table("T", ["", "ms"], [["a", cell] for cell in cells]).figures() == [False, right]


def test_text():
    lines = Table("Times", ["", "ms"], [["one", "10"], ["two", ""]], ["noisy"]).text().split("\n")
    assert lines == ["Times", "", "     ms", "---  --", "one  10", "two", "", "noisy"]
    assert Table("", ["what", "ms"], []).text() == "what  ms\n----  --"


def test_markdown():
    assert TABLE.markdown() == (
        "**Times &lt;of> one run**\n\n"
        "|  | what | ms |\n| --- | --- | ---: |\n| a\\|b | [by peer] | 1.5 |\n| c d |  | – |\n\n"
        "- p &lt; 1"
    )
    assert Table("", ["a"], []).markdown() == "| a |\n| --- |"


def test_rst():
    docutils = pytest.importorskip("docutils.core", reason="only checked where docutils is installed")
    text = Table("Times", ["", "ms"], [["a", "1"], ["b", ""]], ["noisy"]).rst()
    assert text.startswith(".. list-table:: Times\n   :header-rows: 1\n\n   * -\n     - ms\n   * - a\n     - 1\n")
    html = docutils.publish_string(text, writer="html", settings_overrides={"halt_level": 2}).decode()
    assert len(re.findall("<tr", html)) == 3
    assert html.index("</table>") < html.index("noisy")


def test_a_terminal_shows_all_text_as_it_is():
    console = pytest.importorskip("rich.console", reason="rich is not installed").Console(
        file=io.StringIO(), width=80, highlight=False
    )
    Table("Times [of] one", ["", "[what]", "ms"], [["a", "[by peer]", "1"], ["b", "", "10"]], ["see [1]"]).show(console)
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    assert [re.sub(" +", " ", line) for line in lines if "─" not in line] == [
        "", "Times [of] one", "", " [what] ms", " a [by peer] 1", " b 10", "", " * see [1]"
    ]  # fmt: skip
    assert lines[5].index("1") == lines[6].index("0")
