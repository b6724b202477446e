"""``fastio trace follow``: sends the spans of a trace to a collector while they are recorded.

It is a process of its own, so nothing of OpenTelemetry runs in the service, and nothing there waits for a collector.
"""

import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from fastio.trace.analysis import rules
from fastio.trace.analysis.following import Follower
from fastio.trace.analysis.model import Span, TraceError
from fastio.trace.analysis.sending import Collector, Refused, Unavailable

#: Seconds between two looks at the files.
INTERVAL = 0.5
#: Seconds until a collector that could not be reached is asked again, at first and at most.
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
#: Spans that are sent at a time: so many come twice after a crash.
BATCH = 512
_STOPPING = {signal.SIGTERM, signal.SIGINT}
#: The position, in the first directory.
POSITION = "otlp-position.json"


def run(directories: Sequence[Path], url: str | None, position: Path | None, once: bool) -> int:
    """Send what is there and, unless this is to be ``once``, what comes, until a signal ends it.

    :returns: the exit status, 1 if something could not be read or was refused
    :raises TraceError: if there is nothing to follow, no exporter, or ``once`` no collector that takes everything
    """
    live = _Live(directories, url, position)
    try:
        live.once() if once else live.follow()
    finally:
        live.close()
    print(f"{live.sent} spans sent to {live.url}", flush=True)
    return 1 if live.problems else 0


class _Live:
    """What is sent to whom, and how it went."""

    def __init__(self, directories: Sequence[Path], url: str | None, position: Path | None) -> None:
        self._collector = Collector(url)
        self.url = self._collector.url
        where = directories[0] / POSITION if position is None else position
        self._follower = Follower(directories, rules.load(None), where, self._tell)
        self.sent = 0
        #: what could not be read or was refused
        self.problems = 0
        #: what is to be sent next
        self._left: list[Span] = []
        #: why nothing can be done now, as it was told last
        self._obstacle = ""
        self._stopped = False

    def close(self) -> None:
        self._follower.close()

    def once(self) -> None:
        """Send what is there."""
        more = True
        while more:
            try:
                more = self._follower.read()
                self._left = self._follower.ready(final=True) if not more or self._follower.full else []
                self._send()
            except (Unavailable, OSError) as error:
                raise TraceError(f"{self._about(error)}; the next run goes on from here") from error
        self._follower.save()

    def follow(self) -> None:
        """Send what is there, and what comes, until a signal says to stop."""
        # Blocked, and asked for where that can be: a request that is under way gets its answer.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
        try:
            pause = _FIRST_PAUSE
            while not self._stopped:
                try:
                    more = self._step()
                except (Unavailable, OSError) as error:
                    self._hindered(error)
                    if isinstance(error, Unavailable) and error.after:
                        self._wait(error.after)
                    else:
                        self._wait(pause)
                        pause = min(2 * pause, _LONGEST_PAUSE)
                else:
                    pause = _FIRST_PAUSE
                    if not more:
                        self._wait(INTERVAL)
            self._follower.save()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _step(self) -> bool:
        """Send what is left, read, and send what can be sent; returns whether there is more to read."""
        self._send()
        more = self._follower.read()
        if not more or self._follower.full:
            self._left = self._follower.ready()
            self._send()
        return more

    def _send(self) -> None:
        while self._left and not self._stopped:
            batch = self._left[:BATCH]
            self._send_batch(batch)
            del self._left[: len(batch)]
            self._wait(0)

    def _send_batch(self, batch: list[Span]) -> None:
        try:
            self._collector.send(self._follower.exported(batch))
        except Refused as error:
            if len(batch) > 1:
                # One span may be what is refused.
                middle = len(batch) // 2
                self._send_batch(batch[:middle])
                self._send_batch(batch[middle:])
                return
            self._tell(f"{self.url}: a span of {batch[0].process.title} is left out: {error}")
        else:
            self.sent += len(batch)
            if rejected := self._collector.rejected():
                self._tell(f"{self.url}: {rejected} spans were thrown away by it: {self._collector.why}")
        if self._obstacle:
            self._obstacle = ""
            print(f"fastio: {self.url}: it takes spans again", file=sys.stderr, flush=True)
        self._follower.sent(batch)

    def _about(self, error: Exception) -> str:
        return f"{self.url}: {error}" if isinstance(error, Unavailable) else str(error)

    def _hindered(self, error: Exception) -> None:
        # Once for each reason: it is tried again and again.
        told = self._about(error)
        if told != self._obstacle:
            self._obstacle = told
            print(f"fastio: {told}; it is tried again", file=sys.stderr, flush=True)

    def _tell(self, problem: str) -> None:
        self.problems += 1
        print(f"fastio: {problem}", file=sys.stderr, flush=True)

    def _wait(self, seconds: float) -> None:
        """Wait, unless a signal says to stop; with 0 only look."""
        if not self._stopped:
            try:
                self._stopped = signal.sigtimedwait(_STOPPING, seconds) is not None
            except InterruptedError:
                pass
