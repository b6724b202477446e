"""A table loses nothing, however narrow the terminal is."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastio.tables import Table

WORD = st.text("abcdefgh._:é", min_size=1, max_size=30)
TEXT = st.lists(WORD, max_size=8).map(" ".join)
FIGURE = st.builds("{}{} {}".format, st.sampled_from(["", "-", "±"]), st.integers(0, 10**9), st.sampled_from("s%"))
COLUMNS = st.lists(st.sampled_from([TEXT, FIGURE | st.just("–")]), min_size=1, max_size=6)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    columns = draw(COLUMNS)
    rows = draw(st.lists(st.tuples(*columns).map(list), max_size=5))
    head = [draw(TEXT) for _ in columns]
    return Table(draw(TEXT), head, rows, draw(st.lists(TEXT, max_size=2)))


@pytest.mark.parametrize("width", [20, 60, 80, 100, 200, None])
@given(table=tables())
def test_every_word_is_there_and_no_line_is_too_long(width: int | None, table: Table) -> None:
    text = table.text(width)
    # A colon is what a heading has that stands in front of its cell.
    words = {*text.split(), *(word.removesuffix(":") for word in text.split())}
    shown = [table.title, *(cell for row in table.rows for cell in row), *table.notes]
    assert not {word for cell in shown for word in cell.split()} - words
    lines = text.split("\n")
    if width is None:
        # One line for each row, as grep wants it.
        assert len(lines) == 2 * bool(table.title) + 2 + len(table.rows) + (1 + len(table.notes)) * bool(table.notes)
        assert not {word for cell in table.head for word in cell.split()} - words
    else:
        too_long = [line for line in lines if len(line) > width and len(line.split()) > 1]
        # A heading and its first word stay together, and so do a note and its sign.
        assert [line for line in too_long if not re.fullmatch(r" *(\S+:|\*) \S+", line)] == []
