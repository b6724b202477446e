"""Tables of text: one type, printed as plain text, markdown, reStructuredText or in a terminal's colours.

:mod:`fastio.page` shows the same tables in HTML. ::

    from fastio.tables import Table

    waits = Table("Longest waits", ["where", "ms"], [["PooledLock.acquire", "31"]], ["of one run"])
    print(waits.markdown())
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

#: Where nothing is known.
EMPTY = "–"


def number(figure: float | None) -> str:
    """Three digits, or all those before the point."""
    if figure is None:
        return EMPTY
    return f"{figure:.0f}" if abs(figure) >= 100 else f"{figure:.3g}"


@dataclass
class Table:
    """A table, with what there is to say below it. The first cell of a row names it."""

    title: str
    head: Sequence[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)
    #: of each row, one of :data:`fastio.page.TONES`; by default :data:`fastio.page.MARKS` tells
    tones: Sequence[str] | None = None

    def figures(self) -> list[bool]:
        """For each column, whether it is one of figures, which are aligned to the right."""
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(self.head)
        return [_of_figures(column) for column in columns]

    def lines(self, width: int | None = None) -> Iterator[tuple[str, str]]:
        """Lines for a terminal, each with what it is: ``title``, ``head``, ``note``, or nothing.

        :param width: columns of the terminal, see :mod:`fastio.layout`; None: as wide as the table is
        """
        from fastio import layout

        if self.title:
            yield from ((line, "title") for line in layout.wrap(self.title, width))
            yield "", ""
        yield from layout.lines(self.head, self.rows, self.figures(), width)
        if self.notes:
            yield "", ""
        for note in self.notes:
            yield from ((line, "note") for line in layout.wrap(f"  * {note}", width, "    "))

    def text(self, width: int | None = None) -> str:
        """Plain text, without a line at its end, see :meth:`lines`."""
        return "\n".join(line for line, _ in self.lines(width))

    def markdown(self) -> str:
        """Markdown, without a line at its end."""
        ruler = ["---:" if right else "---" for right in self.figures()]
        rows = [[inline(cell).replace("|", "\\|") for cell in row] for row in [self.head, *self.rows]]
        blocks = [
            f"**{inline(self.title)}**" if self.title else "",
            "\n".join(f"| {' | '.join(row)} |" for row in [rows[0], ruler, *rows[1:]]),
            "\n".join(f"- {inline(note)}" for note in self.notes),
        ]
        return "\n\n".join(filter(None, blocks))

    def rst(self) -> str:
        """ReStructuredText, without a line at its end."""
        lines = [f".. list-table:: {self.title}".rstrip(), "   :header-rows: 1", ""]
        for row in [self.head, *self.rows]:
            lines += [f"   {' ' if column else '*'} - {cell}".rstrip() for column, cell in enumerate(row)]
        return "\n".join([*lines, *([""] if self.notes else []), *(f"* {note}" for note in self.notes)])


def _of_figures(cells: Sequence[str]) -> bool:
    found = [bool(re.match(r"[-–−+±~≥≤<>]?\s?\d", cell)) for cell in cells if cell not in ("", "–", "-")]
    return sum(found) > len(found) / 2


def inline(text: str) -> str:
    """A text on one line, in which no HTML begins."""
    return " ".join(text.split()).replace("<", "&lt;")
