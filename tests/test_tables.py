"""The one table, in each way in which it is printed, and at each width."""

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
    assert lines == ["Times", "", "     ms", "---  --", "one  10", "two", "", "  * noisy"]
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


def test_text_that_does_not_fit_is_wrapped_at_blanks() -> None:
    rows = [["a", "one two three four five six seven", "1"], ["b", "eight", "10"]]
    assert Table("", ["", "what", "peak memory ms"], rows).text(36).split("\n") == [
        "                                peak",
        "                              memory",
        "   what                           ms",
        "-  ------------------------  -------",
        "a  one two three four five         1",
        "   six seven",
        "b  eight                          10",
    ]


WIDE = Table(
    "Wide",
    ["row", "what was found", "MB/s", "CPU s/GiB", "peak memory/payload"],
    [["eventlet-stock", "as it is", "514", "2.41", "2.13"],
     ["eventlet-fastio", "much faster than before", "2013", "0.748", "1.01"]],
)  # fmt: skip


def test_columns_that_do_not_fit_stand_below_with_the_names_of_their_rows() -> None:
    assert WIDE.text(50).split("\n") == [
        "Wide",
        "",
        "row              what was found           MB/s",
        "---------------  -----------------------  ----",
        "eventlet-stock   as it is                  514",
        "eventlet-fastio  much faster than before  2013",
        "",
        "row              CPU s/GiB  peak memory/payload",
        "---------------  ---------  -------------------",
        "eventlet-stock        2.41                 2.13",
        "eventlet-fastio      0.748                 1.01",
    ]


def test_rows_that_share_a_name_are_told_apart_in_each_block() -> None:
    rows = [["a", "native", "1", "2"], ["a", "eventlet", "3", "4"]]
    lines = Table("", ["case", "mode", "stock MB/s", "MB/s of fastio"], rows).text(22).split("\n")
    assert [line.split() for line in lines if line.startswith("a")] == [
        ["a", "native", "1"], ["a", "eventlet", "3"], ["a", "native", "2"], ["a", "eventlet", "4"]
    ]  # fmt: skip


def test_each_cell_has_a_line_where_not_even_one_column_fits() -> None:
    name = "glance_store._drivers.filesystem:Store.configure_add"
    text = Table("", ["target", "", "found"], [[name, "", "code of glance_store"], ["b", "", "none"]], ["seen"]).text(
        40
    )
    assert text.split("\n") == [
        "target:", f"    {name}", "found: code of glance_store", "", "target: b", "found: none", "", "  * seen",
    ]  # fmt: skip


def test_wide_characters_take_two_columns() -> None:
    lines = Table("", ["name", "what"], [["日本", "a"], ["e\u0301", "b"]]).text().split("\n")
    assert lines == ["name  what", "----  ----", "日本  a", "e\u0301     b"]


def test_a_cell_of_several_lines_is_one_row() -> None:
    assert Table("", ["name", "what"], [["a\nb", "c"]]).text().split("\n")[2:] == ["a b   c"]


def test_an_empty_table() -> None:
    assert Table("", ["a", "b"], []).text(10) == "a  b\n-  -"
    assert Table("", ["a"], [["b"]]).text(10) == "a\n-\nb"
