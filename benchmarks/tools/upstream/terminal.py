"""Progress and tables on the terminal: bars where it is one, and lines elsewhere, as a log wants them."""

import importlib.util
import re
import sys
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from fastio.tables import Table
from fastio.terminal import width

#: What a CI system takes an order from: a line of GitHub's, and one of Azure's or of the older GitHub's.
_ORDER = re.compile(r"^(?=[ \t]*::)|(?<=##)(?=\w*\[)", re.MULTILINE)
#: Seconds between two plain lines about the same run.
PLAIN_INTERVAL = 10.0


def harmless(text: str) -> str:
    """Text of a test's with nothing in it that a terminal or a CI system would take for an order."""
    shown = "".join(each if each.isprintable() or each in "\n\t" else ascii(each)[1:-1] for each in text)
    return _ORDER.sub(r"\\", shown)


class Screen:
    """What is said while suites run, and at the end."""

    def __init__(self, plain: bool = False) -> None:
        """
        :param plain: no bars, also on a terminal; there are none without rich either
        """
        self._console: Any = None
        if not plain and sys.stdout.isatty() and importlib.util.find_spec("rich") is not None:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeElapsedColumn,
            )

            self._console = Console()
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bars = Progress(*columns, console=self._console)
        #: of each run its bar, or when it was last spoken of
        self._runs: dict[str, Any] = {}
        self._lock = threading.Lock()

    def live(self) -> AbstractContextManager[Any]:
        """Bars are shown within."""
        return self._bars if self._console else nullcontext()

    def say(self, text: str) -> None:
        text = harmless(text)
        if self._console:
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            print(text, flush=True)

    def progress(self, run: str, done: int, total: int) -> None:
        with self._lock:
            if self._console:
                if run not in self._runs:
                    self._runs[run] = self._bars.add_task(run, total=None)
                self._bars.update(self._runs[run], completed=done, total=total or None)
            elif time.monotonic() - self._runs.get(run, 0.0) > PLAIN_INTERVAL:
                self._runs[run] = time.monotonic()
                self.say(f"{run}: {done} of {total}")

    def table(self, table: Table) -> None:
        self.say(f"\n{table.text(width())}")
