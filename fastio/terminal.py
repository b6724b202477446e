"""Printing for commands: as wide as the terminal, and in silence once the reader has gone."""

import functools
import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

if TYPE_CHECKING:
    # It imports dataclasses, and every program under ``fastio run`` would wait for those.
    from fastio.tables import Table

#: The exit status that a shell reports for a command that SIGPIPE has ended.
CLOSED = 141

_Main = TypeVar("_Main", bound=Callable[..., int | None])


def show(tables: "Iterable[Table]", below: Iterable[str] = (), stream: TextIO | None = None) -> None:
    """Print tables, each after an empty line, and lines below them; by default to standard output."""
    columns = width(stream)
    for table in tables:
        print(f"\n{table.text(columns)}", file=stream)
    if below := list(below):
        print(file=stream)
        say("\n".join(below), stream=stream)


def say(text: str, indent: str = "", stream: TextIO | None = None) -> None:
    """Print text, wrapped at blanks.

    :param indent: of the lines after the first
    """
    from fastio.tables import wrap

    for line in text.split("\n"):
        print(*wrap(line, width(stream), indent), sep="\n", file=stream)


def width(stream: TextIO | None = None) -> int | None:
    """The columns of the terminal that the stream is, or ``COLUMNS`` of the environment; None elsewhere."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size((stream or sys.stdout).fileno()).columns or None
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
    """Whether the reader of the standard output has gone; what is left of it then goes nowhere."""
    try:
        # The text that could not be written is lost, and nothing else asks a pipe: eventlet takes select.poll() away.
        print(flush=True)
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        return True
    return False
