"""Progress and tables on the terminal, as a log wants them: lines."""

import re
import threading
import time

from fastio.tables import Table
from fastio.terminal import width

#: Lines that a CI system takes as commands: GitHub's, and one of Azure's or of the older GitHub's.
_ORDER = re.compile(r"^(?=[ \t]*::)|(?<=##)(?=\w*\[)", re.MULTILINE)
#: Seconds between two lines about the same run.
INTERVAL = 10.0


def harmless(text: str) -> str:
    """Text of a test's with nothing in it that a terminal or a CI system would take for an order."""
    shown = "".join(each if each.isprintable() or each in "\n\t" else ascii(each)[1:-1] for each in text)
    return _ORDER.sub(r"\\", shown)


class Screen:
    """The output while suites run, and at the end."""

    def __init__(self) -> None:
        #: run -> when it was last spoken of
        self._runs: dict[str, float] = {}
        self._lock = threading.Lock()

    def say(self, text: str) -> None:
        print(harmless(text), flush=True)

    def progress(self, run: str, done: int, total: int) -> None:
        with self._lock:
            if time.monotonic() - self._runs.get(run, 0.0) > INTERVAL:
                self._runs[run] = time.monotonic()
                self.say(f"{run}: {done} of {total}")

    def table(self, table: Table) -> None:
        self.say(f"\n{table.text(width())}")
