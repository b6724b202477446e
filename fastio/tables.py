"""Tables of plain text, in lines of a given width: no word is broken, and nothing is left out.

Text is wrapped at blanks. If the columns do not fit side by side even so, each cell has a separate line.
"""

import re
import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

#: Where nothing is known.
EMPTY = "–"
_GAP = 2
#: Text is not wrapped to less than this, unless a single column is too wide.
_READABLE = 24


def number(figure: float | None) -> str:
    """Three digits, or all those before the point."""
    if figure is None:
        return EMPTY
    return f"{figure:.0f}" if abs(figure) >= 100 else f"{figure:.3g}"


@dataclass
class Table:
    """A table, with the notes below it. The first cell of a row names it."""

    title: str
    head: Sequence[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)

    def figures(self) -> list[bool]:
        """For each column, whether it is one of figures, which are aligned to the right."""
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(self.head)
        return [_of_figures(column) for column in columns]

    def text(self, width: int | None = None) -> str:
        """Lines of so many columns, None: as wide as the table is; without a line break at the end."""
        title = [*wrap(self.title, width), ""] if self.title else []
        notes = [line for note in self.notes for line in wrap(f"  * {note}", width, "    ")]
        return "\n".join([*title, *self._body(width), *([""] if notes else []), *notes])

    def _body(self, width: int | None) -> Iterator[str]:
        rows = [[printable(" ".join(cell.splitlines())) for cell in row] for row in [self.head, *self.rows]]
        right = self.figures()
        widths = _widths([list(column) for column in zip(*rows, strict=True)], right, width)
        if widths is None:
            yield from _records(rows, width)
            return
        for index, row in enumerate(rows):
            wrapped = [wrap(cell, own) for cell, own in zip(row, widths, strict=True)]
            tall = max(map(len, wrapped))
            # Headings stand on the rule.
            filled = [([""] * (tall - len(c)) + c if index == 0 else c + [""] * (tall - len(c))) for c in wrapped]
            for cells in zip(*filled, strict=True):
                parts = (_aligned(*part) for part in zip(cells, widths, right, strict=True))
                yield (" " * _GAP).join(parts).rstrip()
            if index == 0:
                yield (" " * _GAP).join("-" * own for own in widths)


def printable(text: str, kept: str = "\n") -> str:
    """The text with control characters escaped, but those ``kept``: it may be another process's or a file's."""

    def shown(each: str) -> bool:
        return each.isprintable() or each in kept or unicodedata.category(each) == "Zs"

    return text if text.isprintable() else "".join(each if shown(each) else repr(each)[1:-1] for each in text)


def wrap(text: str, width: int | None, indent: str = "") -> list[str]:
    """The text in lines of the width, those after the first with an indent; a longer word has a separate line."""
    text = printable(text)
    if width is None or _cells(text) <= width:
        return [text]
    options = {"break_long_words": False, "break_on_hyphens": False, "subsequent_indent": indent}
    return textwrap.wrap(text, max(width, len(indent) + 1), **options) or [""]  # type: ignore[arg-type]


def _of_figures(cells: Sequence[str]) -> bool:
    found = [bool(re.match(r"[-–−+±~≥≤<>]?\s?\d", cell)) for cell in cells if cell not in ("", "–", "-")]
    return sum(found) > len(found) / 2


def _cells(text: str) -> int:
    """The columns of a terminal that the text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in "WF") for each in text)


def _widths(columns: Sequence[Sequence[str]], right: Sequence[bool], width: int | None) -> list[int] | None:
    """Return the widths of the columns, of which the widest are made narrower; None if they do not fit."""
    widths = [max(map(_cells, cells)) for cells in columns]
    words = [
        max(max(_cells(word) for word in cells[0].split(" ")), *map(_cells, cells[1:]), 0) if figures
        else max(_cells(word) for cell in cells for word in cell.split(" "))
        for cells, figures in zip(columns, right, strict=True)
    ]  # fmt: skip
    readable = [
        least if figures else max(least, min(own, _READABLE))
        for own, least, figures in zip(widths, words, right, strict=True)
    ]
    for least in (readable, words):
        while width is not None and sum(widths) + _GAP * (len(widths) - 1) > width:
            able = [index for index, own in enumerate(widths) if own > least[index]]
            if not able:
                break
            widths[max(able, key=widths.__getitem__)] -= 1
    return widths if width is None or sum(widths) + _GAP * (len(widths) - 1) <= width else None


def _records(rows: Sequence[Sequence[str]], width: int | None) -> Iterator[str]:
    """Each row as lines of a heading and a cell, with an empty line between two rows."""
    for index, row in enumerate(rows[1:]):
        if index:
            yield ""
        for heading, cell in zip(rows[0], row, strict=True):
            if cell:
                yield from wrap(f"{heading}: {cell}" if heading else cell, width, "    ")


def _aligned(text: str, width: int, right: bool) -> str:
    blanks = " " * (width - _cells(text))
    return blanks + text if right else text + blanks
