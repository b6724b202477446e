"""Show that something goes on: a bar on a terminal, lines elsewhere (a log, CI)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO


class Step(Protocol):
    """What happens within a case."""

    def begin(self, what: str) -> None:
        """A run starts."""

    def end(self, how: str) -> None:
        """It has ended like this."""


class Progress:
    """Progress on ``stream``, by default the standard error."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr

    @contextmanager
    def case(self, title: str, runs: int) -> Iterator[Step]:
        """The case ``title`` of so many runs."""
        if self._stream.isatty():
            yield from self._bar(title, runs)
        else:
            self._stream.write(f"{title}: {runs} runs\n")
            yield _Lines(self._stream, runs)
        self._stream.flush()

    def _bar(self, title: str, runs: int) -> Iterator[Step]:
        from rich import progress
        from rich.console import Console

        console = Console(file=self._stream)
        console.print(title, style="bold", highlight=False)
        columns = (
            progress.SpinnerColumn(),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            progress.TextColumn("left"),
            progress.TimeRemainingColumn(),
            progress.TextColumn("{task.description}", markup=False),
        )
        with progress.Progress(*columns, console=console) as bar:
            yield _Bar(bar, bar.add_task("", total=runs))


class _Lines:
    def __init__(self, stream: TextIO, runs: int) -> None:
        self._stream = stream
        self._runs = runs
        self._done = 0

    def begin(self, what: str) -> None:
        self._done += 1
        # The line begins before the run does, so that a run that hangs can be seen.
        self._stream.write(f"  {self._done}/{self._runs}  {what} … ")
        self._stream.flush()

    def end(self, how: str) -> None:
        self._stream.write(how + "\n")
        self._stream.flush()


class _Bar:
    def __init__(self, bar, task) -> None:
        self._bar = bar
        self._task = task
        self._what = ""

    def begin(self, what: str) -> None:
        self._what = what
        self._bar.update(self._task, description=what)

    def end(self, how: str) -> None:
        self._bar.update(self._task, advance=1, description=f"{self._what}: {how}")
