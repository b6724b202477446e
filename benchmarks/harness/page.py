"""Pages for people: sections of text, tables and plots as one self-contained HTML file.

A page is a title and its sections. A :class:`Section` has a title and parts, in the order in which they are read: what
is imported from here, other sections among them. A table is a :class:`fastio.tables.Table`::

    from benchmarks.harness import page

    sections = [
        page.Section("Summary", [page.Text("Nothing newly fails.", tone="good")]),
        page.Section("Waits", [page.Plot("Waits by time", svg, ["the longest one, 31 ms, is at second 2"])]),
    ]
    page.write(Path("report.html"), page.html("Trace of glance-api", sections))

The HTML needs no other file and no script. It is readable in light and in dark, on a small screen, by keyboard and on
paper. All text that is given is text: it is escaped here.
"""

from __future__ import annotations

import base64
import errno
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from fastio.tables import Table

#: Words with which a cell begins that mark its row, and how; the first that is found counts.
MARKS = (
    ("FAILED", "bad"), ("failed", "bad"), ("newly fails", "bad"), ("WRONG DATA", "bad"), ("slower", "bad"),
    ("faster", "good"), ("newly passes", "good"), ("noise", "noise"), ("flaky", "noise"),
)  # fmt: skip
#: Like it, of the last cell where that shows whether a goal is met.
MET = {"yes": "good", "no": "bad"}

#: Columns from which a table is printed smaller.
MANY = 9
#: Characters up to which the name of a row is kept on one line.
SHORT = 28
#: How all of it looks. Every colour of text has a contrast of 4.5 and more to what it stands on, in light and in dark.
_STYLE = Path(__file__).with_name("page.css")
#: Nothing is loaded from anywhere, and no script runs.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
#: Headings of the highest and of the lowest level of sections.
_FIRST_LEVEL, _LAST_LEVEL = 2, 6


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    #: "good" or "bad" if it is a verdict, which is set off
    tone: str = ""


@dataclass(frozen=True)
class Notes:
    """A list of remarks."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Code:
    """Preformatted text: a command, a traceback, a diff."""

    text: str


@dataclass(frozen=True)
class Plot:
    """An SVG picture. It is an image of the page: no script of it runs, and it can load nothing."""

    #: title of the picture, in a few words
    name: str
    svg: str
    #: alternative text, a line each
    text: Sequence[str]


@dataclass(frozen=True)
class Folded:
    """Parts that are shown when they are asked for, and on paper."""

    summary: str
    parts: Sequence[Part]


@dataclass(frozen=True)
class Section:
    """A heading and what is below it."""

    title: str
    parts: Sequence[Part] = field(default_factory=list)


Part = Text | Notes | Code | Table | Plot | Folded | Section


def html(title: str, sections: Sequence[Section], *, lead: Sequence[Part] = ()) -> str:
    """The page.

    :param lead: parts before the first section, which are not in the table of contents
    """
    made = _Html()
    body = "".join(made.part(each, _FIRST_LEVEL) for each in [*lead, *sections])
    heading = escape(title)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<link rel="icon" href="data:,">
<title>{heading}</title>
<style>
{_STYLE.read_text(encoding="utf-8")}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header><h1>{heading}</h1></header>
{_contents(made.headings)}<main id="content" tabindex="-1">
{body}</main>
</body>
</html>
"""


def write(path: Path, text: str) -> None:
    """Write a file as a whole: whoever reads it finds the old one or the new one, also if this is interrupted.

    A link in its place is replaced, and not followed.

    :raises OSError: if a device or something else that is no file has that name
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EEXIST, "it is not a regular file, and is not replaced", str(path))
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        # mkstemp makes it for the owner alone; a report is to be read by whom the umask lets.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(partial, 0o666 & ~umask)
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise


def _contents(headings: Sequence[tuple[str, str]]) -> str:
    """The table of contents; empty where there is nothing to choose."""
    if len(headings) < 2:
        return ""
    lines = "".join(f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title in headings)
    heading = '<h2 id="contents">Contents</h2>'
    return f'<nav class="contents" aria-labelledby="contents">{heading}<ul>{lines}</ul></nav>\n'


class _Html:
    """Renders parts, and knows which ids are taken."""

    def __init__(self) -> None:
        #: id and title of the sections of the highest level
        self.headings: list[tuple[str, str]] = []
        self._taken = {"content", "contents"}

    def part(self, part: Part, level: int) -> str:
        if isinstance(part, Section):
            return self._section(part, level)
        if isinstance(part, Folded):
            inner = "".join(self.part(each, level) for each in part.parts)
            return f"<details><summary>{escape(part.summary)}</summary>\n{inner}</details>\n"
        if isinstance(part, Table):
            return self._table(part) if part.rows else ""
        if isinstance(part, Plot):
            return self._plot(part)
        return _simple(part)

    def _section(self, part: Section, level: int) -> str:
        name = self._name(part.title)
        if level == _FIRST_LEVEL:
            self.headings.append((name, part.title))
        tag = f"h{min(level, _LAST_LEVEL)}"
        inner = "".join(self.part(each, level + 1) for each in part.parts)
        heading = f'<{tag} id="{name}">{escape(part.title)}</{tag}>'
        return f'<section aria-labelledby="{name}">\n{heading}\n{inner}</section>\n'

    def _name(self, text: str) -> str:
        """An id that is not taken, made of a text."""
        plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60] or "part"
        name, number = plain, 1
        while name in self._taken:
            number += 1
            name = f"{plain}-{number}"
        self._taken.add(name)
        return name

    def _table(self, part: Table) -> str:
        kinds = ["figure" if right else "" for right in part.figures()]
        head = "".join(_cell(cell, "col", kind) for cell, kind in zip(part.head, kinds, strict=True))
        lines = []
        for row in part.rows:
            named = _cell(row[0], "row", kinds[0] or ("short" if len(row[0]) <= SHORT else ""))
            cells = (f"<td{_class(kind)}>{escape(cell)}</td>" for cell, kind in zip(row[1:], kinds[1:], strict=True))
            lines.append(f"<tr{_class(_mark(part, row))}>{named}{''.join(cells)}</tr>")
        name = self._name(f"table-{part.title}")
        caption = f'<caption id="{name}"><span>{escape(part.title)}</span></caption>'
        rows = "\n".join(lines)
        table = f"{caption}\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>"
        return _scrolling(f"<table{_class('many' if len(kinds) >= MANY else '')}>{table}", name) + _notes(part.notes)

    def _plot(self, part: Plot) -> str:
        name, text = (self._name(f"{what}-{part.name}") for what in ("plot", "text"))
        address = f"data:image/svg+xml;base64,{base64.b64encode(part.svg.encode()).decode()}"
        described = f' aria-describedby="{text}"' if part.text else ""
        picture = f'<img src="{address}" alt="{escape(part.name)}"{described}>'
        caption = f'<figcaption id="{name}">{escape(part.name)}</figcaption>'
        lines = "".join(f"<li>{escape(line)}</li>" for line in part.text)
        read = f'<details><summary>As text</summary><ul id="{text}">{lines}</ul></details>' if lines else ""
        return f"<figure>{_scrolling(picture, name)}{caption}{read}</figure>\n"


def _simple(part: Text | Notes | Code) -> str:
    if isinstance(part, Text):
        return f"<p{_class(f'verdict {part.tone}' if part.tone else '')}>{escape(part.text)}</p>\n"
    if isinstance(part, Notes):
        return _notes(part.lines)
    # Long lines scroll, and who has no mouse has to reach them.
    return f'<pre tabindex="0"><code>{escape(part.text)}</code></pre>\n'


def _notes(lines: Sequence[str]) -> str:
    return '<ul class="notes">' + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>\n" if lines else ""


def _scrolling(inner: str, name: str) -> str:
    # A region that scrolls needs the focus, or the keyboard cannot scroll it.
    return f'<div class="scroll" role="region" aria-labelledby="{name}" tabindex="0">{inner}</div>\n'


def _cell(text: str, scope: str, kind: str) -> str:
    """The cell of a heading: of a column or of a row."""
    return f'<th scope="{scope}"{_class(kind)}>{escape(text)}</th>' if text else "<td></td>"


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


def _mark(table: Table, row: Sequence[str]) -> str:
    if table.head[-1] == "met":
        return MET.get(row[-1], "")
    return next((tone for word, tone in MARKS if any(cell.startswith(word) for cell in row)), "")
