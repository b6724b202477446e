"""Happens-before constraints: the messages between processes, and contradictions within one of them.

A message is two moments on the clocks of two processes of which the first cannot be later: points ``message.sent`` and
``message.received`` with the same ``message``, which is a request id. Nothing is concluded from an id that several
processes send.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fastio.trace.analysis.model import Point, Process, Trace


class Message(NamedTuple):
    """``sent``, on the clock of ``sender``, was not later than ``received`` on that of ``receiver``; in ns."""

    sender: Process
    sent: int
    receiver: Process
    received: int
    what: str

    def __str__(self) -> str:
        return f"{self.what}, from {self.sender.title} to {self.receiver.title}"


def messages(trace: Trace) -> list[Message]:
    """Those between different processes, on different clocks or on the same."""
    sent, found = _by_id(trace, "message.sent"), []
    for name, arrivals in _by_id(trace, "message.received").items():
        for arrival in arrivals:
            senders = [each for each in sent.get(name, ()) if each.process is not arrival.process]
            if len({id(each.process) for each in senders}) == 1:
                # Sent again: the first is what all arrivals come after.
                first = min(senders, key=lambda each: each.time)
                found.append(Message(first.process, first.time, arrival.process, arrival.time, f"message {name}"))
    return found


def _by_id(trace: Trace, name: str) -> dict[str, list[Point]]:
    found: dict[str, list[Point]] = {}
    for process in trace.processes:
        for point in process.points:
            if point.name == name and isinstance(point.message, (str, int)):
                found.setdefault(str(point.message), []).append(point)
    return found


def impossible(trace: Trace, found: Sequence[Message]) -> Iterator[str]:
    """Return events in the wrong order on a single clock, where nothing can be corrected."""

    def said(what: str, by: int) -> Iterator[str]:
        if by > 0:
            yield f"{what}: by {by / 1e6:.3f} ms"

    for span in trace.spans():
        what = f"{span.name} (span {span.id} of {span.process.title})"
        yield from said(f"{what} ends before it begins", span.begin - span.end)
        parent = span.process.parent(span)
        if parent is not None:
            yield from said(f"{what} begins before {parent.name} around it", parent.begin - span.begin)
    for message in found:
        if message.sender.clock == message.receiver.clock:
            yield from said(f"{message} arrives before it is sent", message.sent - message.received)
