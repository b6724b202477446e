"""Lines of logs: filtered by severity, and as HTML with anchors."""

import html
import re
from collections.abc import Iterable, Iterator

#: From the least severe on. TRACE is what a service writes below an error.
SEVERITIES = ("DEBUG", "INFO", "AUDIT", "WARNING", "ERROR", "TRACE", "CRITICAL")

#: Bytes of a line that are looked at together; the rest of a longer one follows it as it is.
LONGEST_LINE = 1 << 20
#: Lines after which others may run.
TURN = 1000

_LINE = re.compile(
    rb"(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?)\s+(?:\d+\s+)?"
    rb"(?P<severity>" + "|".join(SEVERITIES).encode() + rb")\b"
)
_NOT_IN_ANCHOR = re.compile(r"[^0-9]")


def lines(chunks: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Of each chunk the lines that end in it, with their ends; cut where they are longer than :data:`LONGEST_LINE`."""
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        found: list[bytes] = []
        # What has come of a line is copied when its end comes, not with each chunk.
        if b"\n" in chunk or size > LONGEST_LINE:
            *whole, rest = b"".join(parts).split(b"\n")
            found = [line + b"\n" for line in whole]
            while len(rest) > LONGEST_LINE:
                found.append(rest[:LONGEST_LINE])
                rest = rest[LONGEST_LINE:]
            parts, size = [rest], len(rest)
        yield found
    if size:
        yield [b"".join(parts)]


def rank(severity: str) -> int:
    """How severe it is; raises ValueError that names those that there are."""
    if severity not in SEVERITIES:
        raise ValueError(f"severity {severity!r} is not one of {', '.join(SEVERITIES)}")
    return SEVERITIES.index(severity)


def marked(chunks: Iterable[bytes], least: int, as_html: bool, chunk_size: int) -> Iterator[bytes]:
    """The lines that are at least so severe, in chunks of about ``chunk_size`` bytes.

    A line without a severity belongs to the one before, as a traceback to its error; what is above the first line with
    one is always there. After each chunk that was read, and after :data:`TURN` lines, there is a piece, an empty one if
    nothing is to be sent, so the work from one piece to the next is bounded.

    :param least: a :func:`rank`
    """
    made: list[bytes] = []
    size = 0
    severity = ""
    if as_html:
        made.append(b"<html><body><pre>\n")
    number = 0
    for group in lines(chunks):
        for line in group:
            number += 1
            if number % TURN == 0:
                yield b""
            found = _LINE.match(line)
            if found:
                severity = found["severity"].decode()
            if severity and rank(severity) < least:
                continue
            text = _as_html(line, number, severity, found) if as_html else line
            made.append(text)
            size += len(text)
            if size >= chunk_size:
                yield b"".join(made)
                made, size = [], 0
        yield b""
    if as_html:
        made.append(b"</pre></body></html>\n")
    if made:
        yield b"".join(made)


def _as_html(line: bytes, number: int, severity: str, found: re.Match[bytes] | None) -> bytes:
    text = html.escape(line.decode("utf-8", "replace").rstrip("\n"))
    name = "_" + _NOT_IN_ANCHOR.sub("_", found["time"].decode()) if found else ""
    anchor = f'<a name="{name}"></a>' if name else ""
    kind = f' class="{severity}"' if severity else ""
    return f'{anchor}<a name="l{number}" href="#l{number}"></a><span{kind}>{text}</span>\n'.encode()
