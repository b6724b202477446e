"""Tables as markdown and as reStructuredText."""

from fastio.tables import Table


def markdown(table: Table) -> str:
    """Markdown, without a line break at its end."""
    ruler = ["---:" if right else "---" for right in table.figures()]
    rows = [[inline(cell).replace("|", "\\|") for cell in row] for row in [table.head, *table.rows]]
    blocks = [
        f"**{inline(table.title)}**" if table.title else "",
        "\n".join(f"| {' | '.join(row)} |" for row in [rows[0], ruler, *rows[1:]]),
        "\n".join(f"- {inline(note)}" for note in table.notes),
    ]
    return "\n\n".join(filter(None, blocks))


def rst(table: Table) -> str:
    """ReStructuredText, without a line break at its end."""
    lines = [f".. list-table:: {table.title}".rstrip(), "   :header-rows: 1", ""]
    for row in [table.head, *table.rows]:
        lines += [f"   {' ' if column else '*'} - {cell}".rstrip() for column, cell in enumerate(row)]
    return "\n".join([*lines, *([""] if table.notes else []), *(f"* {note}" for note in table.notes)])


def inline(text: str) -> str:
    """A text on one line, in which no HTML begins."""
    return " ".join(text.split()).replace("<", "&lt;")
