"""Pages for people: sections of text, tables and plots as one self-contained HTML file, and as markdown.

A page is a title and its sections. A :class:`Section` has a title and parts, in the order in which they are read: what
is imported from here, other sections among them. A table is a :class:`fastio.tables.Table`::

    from benchmarks.harness import page

    sections = [
        page.Section("Summary", [page.Text("Nothing newly fails.", tone="good")]),
        page.Section("Waits", [
            page.Table("Longest waits", ["where", "ms"], [["PooledLock.acquire", "31"]], notes=["of one run"]),
            page.Plot("Waits by time", svg, ["the longest one, 31 ms, is at second 2"]),
        ]),
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from benchmarks.harness import markup
from benchmarks.harness.markup import inline
from fastio.errors import FastioError
from fastio.tables import Table

#: How a text can be meant, and a row of a table be marked.
TONES = ("", "good", "bad", "noise")

#: Words with which a cell begins that mark its row; the first that is found counts.
MARKS = (
    ("FAILED", "bad"), ("failed", "bad"), ("newly fails", "bad"), ("WRONG DATA", "bad"), ("slower", "bad"),
    ("faster", "good"), ("newly passes", "good"), ("noise", "noise"), ("flaky", "noise"),
)  # fmt: skip

#: Characters of a table's widest row from which it is wider than a telephone.
WIDE = 36
#: Columns from which a table is printed smaller.
MANY = 9
#: Characters up to which the name of a row is kept on one line.
SHORT = 28
#: Entries of the table of contents from which a small screen has only those of the highest level.
LONG = 16
#: Levels of sections that the table of contents has.
CONTENTS_DEPTH = 2
#: How all of it looks. Every colour of text has a contrast of 4.5 and more to what it stands on, in light and in dark.
_STYLE = Path(__file__).with_name("page.css")
#: Nothing is loaded from anywhere, and no script runs.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
#: Heading of the highest level of sections.
_FIRST_LEVEL = 2
_LAST_LEVEL = 6


class PageError(FastioError, ValueError):
    """Something that cannot be shown in a page; the message says what and why."""


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    #: one of :data:`TONES`; other than "" it is a verdict, which is set off
    tone: str = ""


@dataclass(frozen=True)
class Notes:
    """A list of remarks."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Code:
    """Text as it is: a command, a traceback, a diff."""

    text: str


@dataclass(frozen=True)
class Plot:
    """An SVG picture. It is an image of the page: no script of it runs, and it can load nothing."""

    #: what it shows, in a few words
    name: str
    svg: str
    #: what can be seen in it, for those who cannot see it: a line each
    text: Sequence[str]


@dataclass(frozen=True)
class Download:
    """A file within the page, to be saved."""

    label: str
    #: of the file
    name: str
    data: bytes
    media_type: str = "application/json"


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


@dataclass
class Toned(Table):
    """A table with one of :data:`TONES` for each row; by default :data:`MARKS` tell."""

    tones: Sequence[str] = ()


Part = Text | Notes | Code | Table | Plot | Download | Folded | Section


def html(title: str, sections: Sequence[Section], *, lead: Sequence[Part] = (), language: str = "en") -> str:
    """The page.

    :param lead: what comes before the first section, and is not in the table of contents
    :raises PageError: for a tone that is not known
    """
    made = _Html()
    body = [made.part(each, _FIRST_LEVEL) for each in [*lead, *sections]]
    heading = escape(title)
    return f"""<!DOCTYPE html>
<html lang="{escape(language)}">
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
{"".join(body)}</main>
</body>
</html>
"""


def markdown(title: str, sections: Sequence[Section], *, lead: Sequence[Part] = ()) -> str:
    """The same as markdown: without the plots, whose tables are there, and without downloads."""
    blocks = [f"# {inline(title)}", *(block for each in [*lead, *sections] for block in _markdown(each, 2))]
    return "\n\n".join(blocks) + "\n"


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


def _contents(headings: Sequence[tuple[int, str, str]]) -> str:
    """The table of contents, nested; empty where there is nothing to choose."""
    if len(headings) < 2:
        return ""
    lines, level = [], _FIRST_LEVEL - 1
    for depth, name, title in headings:
        lines.append("<ul>" * (depth - level) if depth > level else "</li>" + "</ul></li>" * (level - depth))
        lines.append(f'<li><a href="#{name}">{escape(title)}</a>')
        level = depth
    lines.append("</li></ul>" * (level - _FIRST_LEVEL + 1))
    several = sum(depth == _FIRST_LEVEL for depth, *_ in headings) > 2
    kind = "contents long" if len(headings) > LONG and several else "contents"
    return f'<nav class="{kind}" aria-labelledby="contents"><h2 id="contents">Contents</h2>{"".join(lines)}</nav>\n'


class _Html:
    """Renders parts, and knows which ids are taken."""

    def __init__(self) -> None:
        #: level, id and title of those in the table of contents
        self.headings: list[tuple[int, str, str]] = []
        self._taken = {"content", "contents"}

    def part(self, part: Part, level: int) -> str:
        if isinstance(part, Section):
            return self._section(part, level)
        if isinstance(part, Folded):
            inner = "".join(self.part(each, level) for each in part.parts)
            return f"<details><summary>{escape(part.summary)}</summary>\n{inner}</details>\n"
        if isinstance(part, Table):
            return self._table(part)
        if isinstance(part, Plot):
            return self._plot(part)
        return _simple(part)

    def _section(self, part: Section, level: int) -> str:
        name = self._name(part.title)
        if level < _FIRST_LEVEL + CONTENTS_DEPTH:
            self.headings.append((level, name, part.title))
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
        if not part.rows:
            return ""
        right = part.figures()
        head = "".join(
            f'<th scope="col"{_right(each)}>{escape(cell)}</th>' if cell else "<td></td>"
            for cell, each in zip(part.head, right, strict=True)
        )
        tones = part.tones if isinstance(part, Toned) else list(map(_mark, part.rows))
        rows = "\n".join(
            f"<tr{_tone(tone)}>{_row(row, right)}</tr>" for row, tone in zip(part.rows, tones, strict=True)
        )
        name = self._name(f"table-{part.title}")
        caption = f'<caption id="{name}"><span>{escape(part.title)}</span></caption>'
        many = ' class="many"' if len(part.head) >= MANY else ""
        table = f"<table{many}>{caption}\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>"
        return _scrolling(table, name, _width(part) > WIDE) + _notes(part.notes)

    def _plot(self, part: Plot) -> str:
        name, text = (self._name(f"{what}-{part.name}") for what in ("plot", "text"))
        address = f"data:image/svg+xml;base64,{base64.b64encode(part.svg.encode()).decode()}"
        described = f' aria-describedby="{text}"' if part.text else ""
        picture = f'<img src="{address}" alt="{escape(part.name)}"{described}>'
        caption = f'<figcaption id="{name}">{escape(part.name)}</figcaption>'
        lines = "".join(f"<li>{escape(line)}</li>" for line in part.text)
        read = f'<details><summary>As text</summary><ul id="{text}">{lines}</ul></details>' if lines else ""
        return f"<figure>{_scrolling(picture, name, True)}{caption}{read}</figure>\n"


def _simple(part: Text | Notes | Code | Download) -> str:
    if isinstance(part, Text):
        return f"<p{_tone(part.tone, 'verdict')}>{escape(part.text)}</p>\n"
    if isinstance(part, Notes):
        return _notes(part.lines)
    if isinstance(part, Code):
        # Long lines scroll, and who has no mouse has to reach them.
        return f'<pre tabindex="0"><code>{escape(part.text)}</code></pre>\n'
    data = base64.b64encode(part.data).decode()
    address = f"data:{part.media_type};base64,{data}"
    return f'<p><a download="{escape(part.name)}" href="{address}">{escape(part.label)}</a></p>\n'


def _notes(lines: Sequence[str]) -> str:
    return '<ul class="notes">' + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>\n" if lines else ""


def _scrolling(inner: str, name: str, wide: bool) -> str:
    # A region that scrolls needs the focus, or the keyboard cannot scroll it.
    reached = f' role="region" aria-labelledby="{name}" tabindex="0"' if wide else ""
    return f'<div class="scroll"{reached}>{inner}</div>\n'


def _row(row: Sequence[str], right: Sequence[bool]) -> str:
    short = ' class="short"' if len(row[0]) <= SHORT else ""
    first = f'<th scope="row"{_right(right[0]) or short}>{escape(row[0])}</th>' if row[0] else "<td></td>"
    rest = (f"<td{_right(each)}>{escape(cell)}</td>" for cell, each in zip(row[1:], right[1:], strict=True))
    return first + "".join(rest)


def _right(right: bool) -> str:
    return ' class="figure"' if right else ""


def _mark(row: Sequence[str]) -> str:
    return next((tone for word, tone in MARKS if any(cell.startswith(word) for cell in row)), "")


def _tone(tone: str, *others: str) -> str:
    if tone not in TONES:
        raise PageError(f"tone {tone!r}: allowed are {', '.join(map(repr, TONES))}")
    return f' class="{" ".join([*others, tone])}"' if tone else ""


def _width(table: Table) -> int:
    return sum(max(len(row[column]) for row in [table.head, *table.rows]) + 2 for column in range(len(table.head)))


# Markdown.


def _markdown(part: Part, level: int) -> Iterator[str]:
    if isinstance(part, Section):
        yield f"{'#' * min(level, _LAST_LEVEL)} {inline(part.title)}"
        for each in part.parts:
            yield from _markdown(each, level + 1)
    elif isinstance(part, Folded):
        yield f"**{inline(part.summary)}**"
        for each in part.parts:
            yield from _markdown(each, level)
    elif isinstance(part, Table):
        if part.rows:
            yield markup.markdown(part)
    elif isinstance(part, Text):
        yield f"**{inline(part.text)}**" if part.tone else inline(part.text)
    elif isinstance(part, Notes):
        if part.lines:
            yield "\n".join(f"- {inline(line)}" for line in part.lines)
    elif isinstance(part, Code):
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", part.text)), default=0))
        yield f"{fence}\n{part.text.rstrip()}\n{fence}"
