"""Tables of text, at each width."""

import pytest

from fastio.tables import Table, printable


@pytest.mark.parametrize(
    ("cells", "right"),
    [
        (["1", "2"], True), (["1.5 ms", "–", "-", ""], True), (["≥ 3", "noise"], False), (["-3", "±4", "failed"], True),
        (["a1"], False), (["–"], False), ([], False),
    ],
)  # fmt: skip
def test_columns_of_figures(cells, right):
    assert Table("T", ["", "ms"], [["a", cell] for cell in cells]).figures() == [False, right]


def test_a_table_as_text_has_aligned_columns():
    lines = Table("Times", ["", "ms"], [["one", "10"], ["two", ""]], ["noisy"]).text().split("\n")
    assert lines == ["Times", "", "     ms", "---  --", "one  10", "two", "", "  * noisy"]
    assert Table("", ["what", "ms"], []).text() == "what  ms\n----  --"


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


def test_each_cell_has_a_line_where_the_columns_do_not_fit() -> None:
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


def test_control_characters_are_escaped() -> None:
    """Names and values come from files and other processes."""
    assert printable("a\x1b]0;x\x07\u202e\ud800é\u2007\n") == "a\\x1b]0;x\\x07\\u202e\\ud800é\u2007\n"
    for width in (None, 8):
        text = Table("t\x1b[2J", ["h\x1b[2J"], [["c\x1b[2J\r"]], ["n\x1b[2J"]).text(width)
        assert text.count("\\x1b[2J") == 4 and text.replace("\n", "").isprintable()
