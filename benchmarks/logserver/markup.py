"""Lines of logs: filtered by severity, and as HTML with anchors."""

import html
import re
from collections.abc import Iterable, Iterator

#: From the least severe on. TRACE is what a service writes below an error.
SEVERITIES = ("DEBUG", "INFO", "AUDIT", "WARNING", "ERROR", "TRACE", "CRITICAL")

#: Bytes of a line that are looked at together; the rest of a longer one follows it as it is.
LONGEST_LINE = 1 << 20

_LINE = re.compile(
    rb"(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?)\s+(?:\d+\s+)?"
    rb"(?P<severity>" + "|".join(SEVERITIES).encode() + rb")\b"
)
_NOT_IN_ANCHOR = re.compile(r"[^0-9]")


def lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines with their ends, cut where they are longer than :data:`LONGEST_LINE`."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line + b"\n"
        while len(rest) > LONGEST_LINE:
            yield rest[:LONGEST_LINE]
            rest = rest[LONGEST_LINE:]
    if rest:
        yield rest


def rank(severity: str) -> int:
    """How severe it is; raises ValueError that names those that there are."""
    if severity not in SEVERITIES:
        raise ValueError(f"severity {severity!r} is not one of {', '.join(SEVERITIES)}")
    return SEVERITIES.index(severity)


def marked(chunks: Iterable[bytes], least: int, as_html: bool, chunk_size: int) -> Iterator[bytes]:
    """The lines that are at least so severe, in chunks of about ``chunk_size`` bytes.

    A line without a severity belongs to the one before, as a traceback to its error; what is above the first line with
    one is always there.

    :param least: a :func:`rank`
    """
    made: list[bytes] = []
    size = 0
    severity = ""
    if as_html:
        made.append(b"<html><body><pre>\n")
    for number, line in enumerate(lines(chunks), 1):
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
