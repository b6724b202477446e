"""That a table loses nothing, however narrow the terminal is."""

import re
from collections.abc import Sequence

from fastio.tables import Table

WIDTHS = (60, 80, 100, 200)


def lost(text: str, width: int, cells: Sequence[str]) -> list[str]:
    """The cells of which a word is not in the text, or of a figure any part; and the lines that are too long."""
    # A colon is what a heading has that stands in front of its cell.
    words = set(text.split()) | {word.removesuffix(":") for word in text.split()}
    found = [cell for cell in cells if not words.issuperset(cell.split())]
    found += [cell for cell in cells if re.fullmatch(r"[-–+±]?[\d.,]+( ?[%a-zA-Z/]+)?", cell) and cell not in text]
    return found + [line for line in text.split("\n") if len(line) > width and len(line.split()) > 1]


def check(table: Table) -> None:
    """Nothing of the table is lost at any width."""
    cells = [table.title, *table.head, *(cell for row in table.rows for cell in row), *table.notes]
    for width in WIDTHS:
        assert lost(table.text(width), width, cells) == [], f"{table.title} at {width} columns"
    lines = table.text().split("\n")
    # One line for each row, as grep wants it.
    assert len(lines) == 2 * bool(table.title) + 2 + len(table.rows) + (1 + len(table.notes) if table.notes else 0)
