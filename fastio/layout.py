"""Lay a table out in lines of a given width. No word is broken, and nothing is left out.

Columns that do not fit side by side are wrapped at blanks first. What still does not fit stands in further blocks
below, in the order of the columns. The columns that name the rows are in front of each block. Where not even one column
fits beside those, each cell has a line of its own.
"""

import textwrap
import unicodedata
from collections.abc import Iterator, Sequence

_GAP = 2
#: Text is not wrapped to less than this, unless a single column is too wide.
_READABLE = 24


def lines(
    head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool], width: int | None
) -> Iterator[tuple[str, str]]:
    """The lines of the table, each with what it is: ``head``, or nothing.

    :param right: for each column, whether it is aligned to the right, which is what figures are; these are not wrapped
    :param width: columns of the terminal, None: as wide as the table is
    """
    head, *body = ([" ".join(cell.splitlines()) for cell in row] for row in [head, *rows])
    columns = [_Column(list(cells), aligned) for *cells, aligned in zip(head, *body, right, strict=True)]
    names = columns[: _naming(body, len(head))]
    blocks = [columns] if width is None else _blocks(columns, names, width)
    if blocks is None:
        yield from _records(columns, width or 0)
        return
    for number, block in enumerate(blocks):
        if number:
            yield "", ""
        yield from _side_by_side(block, width)


class _Column:
    """One column, and how narrow it may become."""

    def __init__(self, cells: list[str], right: bool) -> None:
        self.cells = cells
        self.right = right
        words = max((cells_width(word) for cell in cells for word in cell.split(" ")), default=0)
        figures = max(map(cells_width, cells[1:]), default=0) if right else 0
        self.natural = max(map(cells_width, cells))
        self.least = max(words, figures)
        self.readable = max(self.least, min(self.natural, 0 if right else _READABLE))


def cells_width(text: str) -> int:
    """How many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in "WF") for each in text)


def _naming(rows: Sequence[Sequence[str]], columns: int) -> int:
    """How many columns it takes, from the first on, to tell the rows apart."""
    for count in range(1, columns):
        if len({tuple(row[:count]) for row in rows}) == len(rows):
            return count
    return 1


def _taken(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _blocks(columns: Sequence[_Column], names: Sequence[_Column], width: int) -> list[list[_Column]] | None:
    """The columns of each block; None if a column does not fit beside those that name the rows."""
    if _taken([each.readable for each in columns]) <= width:
        return [list(columns)]
    blocks: list[list[_Column]] = []
    for column in columns[len(names) :]:
        if blocks and _taken([each.readable for each in [*blocks[-1], column]]) <= width:
            blocks[-1].append(column)
        elif _taken([each.least for each in [*names, column]]) <= width:
            blocks.append([*names, column])
        else:
            return None
    return blocks or None


def _widths(block: Sequence[_Column], width: int | None) -> list[int]:
    """Those of the block's columns: what does not fit is taken from the widest."""
    widths = [each.natural for each in block]
    for least in ([each.readable for each in block], [each.least for each in block]):
        while width is not None and _taken(widths) > width:
            able = [index for index, own in enumerate(widths) if own > least[index]]
            if not able:
                break
            widths[max(able, key=widths.__getitem__)] -= 1
    return widths


def _side_by_side(block: Sequence[_Column], width: int | None) -> Iterator[tuple[str, str]]:
    widths = _widths(block, width)
    for number, row in enumerate(zip(*(column.cells for column in block), strict=True)):
        wrapped = [wrap(cell, own) for cell, own in zip(row, widths, strict=True)]
        tall = max(map(len, wrapped))
        for index in range(tall):
            # Headings stand on the rule.
            at = index - tall if number == 0 else index
            parts = [
                _aligned(cell[at] if -len(cell) <= at < len(cell) else "", own, column.right)
                for cell, own, column in zip(wrapped, widths, block, strict=True)
            ]
            yield (" " * _GAP).join(parts).rstrip(), "" if number else "head"
        if number == 0:
            yield (" " * _GAP).join("-" * own for own in widths), ""


def _records(columns: Sequence[_Column], width: int) -> Iterator[tuple[str, str]]:
    """Each row as lines of a heading and a cell, with an empty line between two rows."""
    head, *rows = zip(*(column.cells for column in columns), strict=True)
    for number, row in enumerate(rows):
        if number:
            yield "", ""
        for heading, cell in zip(head, row, strict=True):
            if cell:
                yield from ((line, "") for line in wrap(f"{heading}: {cell}" if heading else cell, width, "    "))


def wrap(text: str, width: int | None, indent: str = "") -> list[str]:
    """The text in lines of the width, those after the first with an indent; a longer word has a line of its own."""
    if width is None or cells_width(text) <= width:
        return [text]
    options = {"break_long_words": False, "break_on_hyphens": False, "subsequent_indent": indent}
    return textwrap.wrap(text, max(width, len(indent) + 1), **options) or [""]  # type: ignore[arg-type]


def _aligned(text: str, width: int, right: bool) -> str:
    blanks = " " * (width - cells_width(text))
    return blanks + text if right else text + blanks
