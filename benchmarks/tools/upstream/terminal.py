"""Progress and tables on the terminal: with rich where it is installed, as plain lines otherwise."""

from __future__ import annotations

import importlib.util
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastio.tables import Table

#: Seconds between two plain lines about the same run.
PLAIN_INTERVAL = 10.0


class Plain:
    """Lines, as a log wants them."""

    def __init__(self) -> None:
        self._said: dict[str, float] = {}
        self._lock = threading.Lock()

    @contextmanager
    def live(self) -> Iterator[None]:
        yield

    def say(self, text: str) -> None:
        print(text, flush=True)

    def progress(self, run: str, done: int, total: int) -> None:
        with self._lock:
            now = time.monotonic()
            if now - self._said.get(run, 0.0) > PLAIN_INTERVAL:
                self._said[run] = now
                self.say(f"{run}: {done} of {total}")

    def table(self, table: Table) -> None:
        self.say(f"\n{table.text()}")


class Rich:
    """Bars while it works, tables at the end."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        self._console = Console()
        self._bars = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            console=self._console,
        )  # fmt: skip
        self._tasks: dict[str, Any] = {}

    @contextmanager
    def live(self) -> Iterator[None]:
        with self._bars:
            yield

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False)

    def progress(self, run: str, done: int, total: int) -> None:
        if run not in self._tasks:
            self._tasks[run] = self._bars.add_task(run, total=None)
        self._bars.update(self._tasks[run], completed=done, total=total or None)

    def table(self, table: Table) -> None:
        table.show(self._console)


def terminal(plain: bool = False) -> Plain | Rich:
    """The best that is installed; lines where the output is not a terminal."""
    if plain or not sys.stdout.isatty() or importlib.util.find_spec("rich") is None:
        return Plain()
    return Rich()
