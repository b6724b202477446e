"""Tables of text: one type, printed as plain text, markdown, reStructuredText or in a terminal's colours.

:mod:`fastio.page` shows the same tables in HTML. ::

    from fastio.tables import Table

    waits = Table("Longest waits", ["where", "ms"], [["PooledLock.acquire", "31"]], ["of one run"])
    print(waits.markdown())
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

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

    def text(self) -> str:
        """Plain text: each column as wide as its widest cell, all of them aligned to the left."""
        widths = [max(map(len, column)) for column in zip(self.head, *self.rows, strict=True)]
        rule = ["-" * width for width in widths]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in [self.head, rule, *self.rows]
        ]
        return "\n".join(
            [*([self.title, ""] if self.title else []), *lines, *([""] if self.notes else []), *self.notes]
        )

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

    def show(self, console: Any, notes_style: str = "dim") -> None:
        """Print it on a ``rich.console.Console``, with an empty line before it."""
        from rich import box, table
        from rich.markup import escape

        made = table.Table(title=escape(self.title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
        for heading, right in zip(self.head, self.figures(), strict=True):
            made.add_column(escape(heading), justify="right" if right else "left", overflow="fold")
        for row in self.rows:
            made.add_row(*map(escape, row))
        console.print()
        console.print(made)
        for note in self.notes:
            console.print(f"  * {note}", markup=False, style=notes_style)


def _of_figures(cells: Sequence[str]) -> bool:
    found = [bool(re.match(r"[-–−+±~≥≤<>]?\s?\d", cell)) for cell in cells if cell not in ("", "–", "-")]
    return sum(found) > len(found) / 2


def inline(text: str) -> str:
    """A text on one line, in which no HTML begins."""
    return " ".join(text.split()).replace("<", "&lt;")
