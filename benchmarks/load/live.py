"""What a run has done so far: a line that stays in its place on a terminal, and one every ten seconds elsewhere."""

import contextlib
import importlib.util
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from benchmarks.load.plan import Plan
from fastio.tables import Table, number

#: Seconds between two lines where there is no terminal.
PLAIN_INTERVAL = 10.0
MIB = 1 << 20


class Board:
    """Where those that go on at the same time show a line each. Any thread may say or show something.

    :param stream: the standard error by default
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._lock = threading.Lock()
        self._lines: dict[str, str] = {}
        #: when something was last shown of each, where there is no terminal
        self._shown: dict[str, float] = {}
        self._place: Any = None
        if self._stream.isatty() and importlib.util.find_spec("rich") is not None:
            from rich.console import Console
            from rich.live import Live as Place

            # It is refreshed by us alone: in a generator, rich's thread would be one of gevent's greenlets.
            console = Console(file=self._stream, highlight=False, markup=False)
            self._place = Place(console=console, auto_refresh=False, transient=True)

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """The lines are shown within."""
        with self._place or contextlib.nullcontext():
            yield

    def show(self, name: str, line: str) -> None:
        """Put the line in the place of the one before of the same name. An empty one ends it."""
        with self._lock:
            self._lines[name] = f"{name}: {line}" if name else line
            if not line:
                del self._lines[name]
            if self._place:
                self._place.update("\n".join(self._lines.values()), refresh=True)
            elif line and time.monotonic() - self._shown.get(name, -PLAIN_INTERVAL) >= PLAIN_INTERVAL:
                self._shown[name] = time.monotonic()
                print(self._lines[name], file=self._stream, flush=True)

    def say(self, line: str) -> None:
        """Print a line that stays, above the others."""
        with self._lock:
            if self._place:
                self._place.console.print(line, soft_wrap=True)
            else:
                print(line, file=self._stream, flush=True)


class Live:
    """Shows Locust's statistics of a run.

    :param stats: those of the master, ``locust.stats.RequestStats``
    :param tell: is given each line, instead of the standard error
    """

    def __init__(self, plan: Plan, stats: Any, tell: TextIO | None = None) -> None:
        self._plan = plan
        self._stats = stats
        self._tell = tell
        self._board = Board()
        self._begun = time.monotonic()

    def shown(self) -> contextlib.AbstractContextManager[None]:
        """The line is shown within."""
        return self._board.shown()

    def go_on(self, sleep: Callable[[float], object]) -> None:
        """Show it for ever; for a greenlet."""
        while True:
            sleep(1)
            if self._tell:
                print(self.line(), file=self._tell, flush=True)
            else:
                self._board.show("", self.line())

    def line(self) -> str:
        """The figures so far."""
        total = self._stats.total
        seconds = time.monotonic() - self._begun
        ends = f" of {self._plan.seconds:g}" if self._plan.seconds else ""
        return (
            f"{seconds:.0f}{ends} s: {total.num_requests} operations, {total.num_failures} failed, "
            f"{number(total.num_requests / seconds)}/s, {number(total.total_content_length / MIB / seconds)} MiB/s, "
            f"p50 {total.get_response_time_percentile(0.5)} ms, p99 {total.get_response_time_percentile(0.99)} ms"
        )

    def summary(self) -> Table:
        """The whole run, a row for each kind of operation."""
        seconds = time.monotonic() - self._begun
        rows = [
            [
                kind, str(each.num_requests), str(each.num_failures), number(each.num_requests / seconds),
                number(each.total_content_length / MIB / seconds),
                *(number(each.get_response_time_percentile(part)) for part in (0.5, 0.9, 0.99)),
            ]
            for (_, kind), each in sorted(self._stats.entries.items(), key=lambda item: item[0][1])
        ]  # fmt: skip
        head = ["operation", "operations", "failed", "/s", "MiB/s", "p50 ms", "p90 ms", "p99 ms"]
        notes = ["of the whole run, as Locust counts; analyze has what is without warm-up and tail"]
        return Table(f"{number(seconds)} s of {self._plan.protocol}", head, rows, notes)
