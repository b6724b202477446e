"""What a command prints: as wide as the terminal, in colour on one, and without a word if nobody reads on."""

import functools
import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from fastio import layout

if TYPE_CHECKING:
    # It imports dataclasses, and every program under ``fastio run`` would wait for those.
    from fastio.tables import Table

#: What a shell says of a command that SIGPIPE has ended.
CLOSED = 141
#: Kind of a line, or a tone of :data:`fastio.page.TONES` -> what the terminal is told.
_STYLES = {"title": "1", "head": "1", "note": "2", "warning": "33", "good": "32", "bad": "31"}

_Main = TypeVar("_Main", bound=Callable[..., int | None])


class Terminal:
    """A stream that lines and tables are printed on.

    :param stream: the standard output by default
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        #: columns, None: whatever a line needs, which is what a pipe has unless the environment gives ``COLUMNS``
        self.width = width(self._stream)
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        self._coloured = self._stream.isatty() and not plain

    def say(self, text: str = "", style: str = "", indent: str = "") -> None:
        """Print text, wrapped at blanks.

        :param style: ``title``, ``head``, ``note``, ``warning``, ``good`` or ``bad``
        :param indent: of the lines after the first
        """
        for line in text.split("\n"):
            for piece in layout.wrap(line, self.width, indent):
                self._line(piece, style)

    def table(self, table: "Table", notes: str = "note") -> None:
        """Print a table with an empty line before it; its notes have the style ``notes``."""
        self._line("", "")
        for line, style in table.lines(self.width):
            self._line(line, notes if style == "note" else style)

    def tables(self, tables: "Iterable[Table]", below: Iterable[str] = ()) -> None:
        """Print tables whose notes are warnings, and lines below them."""
        for each in tables:
            self.table(each, "warning")
        self.say()
        for line in below:
            self.say(line, "note")

    def _line(self, line: str, style: str) -> None:
        code = _STYLES.get(style) if self._coloured and line else None
        self._stream.write(f"\x1b[{code}m{line}\x1b[0m\n" if code else f"{line}\n")


def width(stream: TextIO | None = None) -> int | None:
    """The columns of the terminal that the stream is, or ``COLUMNS`` of the environment; None elsewhere."""
    stream = stream or sys.stdout
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def command(main: _Main) -> _Main:
    """A ``main()`` that ends in silence when the reader of its output has gone, as with ``| head``."""

    @functools.wraps(main)
    def quiet(*arguments: Any, **named: Any) -> int | None:
        try:
            try:
                return main(*arguments, **named)
            finally:
                # Also of what --help has printed.
                sys.stdout.flush()
        except BrokenPipeError:
            if not _closed():
                raise
            return CLOSED

    return quiet  # type: ignore[return-value]


def _closed() -> bool:
    """Whether nobody reads the standard output; what is left of it then goes nowhere."""
    try:
        # The text that could not be written is lost, and nothing else asks a pipe: eventlet takes select.poll() away.
        print(flush=True)
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        return True
    return False
