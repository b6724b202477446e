"""What cannot have happened before what: the messages between processes, and what is wrong within one of them.

A message is two moments on the clocks of two processes of which the first cannot be later. Two sources:

- points ``message.sent`` and ``message.received`` with the same ``message``;
- a ``client.request`` and the request of a server that has the same ``global`` id: the server begins after the client
  has begun and, if the client got its answer, before the client ends. The server's end says nothing: it comes when the
  server looks for more data after the last, which the client may have by then.

Where it is not certain who answered whom (an id that several processes send, requests of one id that overlap) nothing
is concluded, or only what holds for all of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fastio.trace.analysis.model import Point, Process, Span, Trace

SENT, RECEIVED = "message.sent", "message.received"
#: The span of who calls; that of who serves is called the same after another first word.
CALLER = "client.request"
SERVER_SUFFIX = ".request"


@dataclass(frozen=True)
class Message:
    """``sent``, on the clock of ``sender``, was not later than ``received`` on that of ``receiver``; in ns."""

    sender: Process
    sent: int
    receiver: Process
    received: int
    what: str

    def __str__(self) -> str:
        return f"{self.what}, from {self.sender.title} to {self.receiver.title}"


@dataclass(frozen=True)
class Impossible:
    """Two events of one clock that are in the wrong order."""

    what: str
    #: by how much, in ns
    by: int

    def __str__(self) -> str:
        return f"{self.what}: by {self.by / 1e6:.3f} ms"


def messages(trace: Trace) -> list[Message]:
    """Those between different processes, on different clocks or on the same."""
    return [*_points(trace), *_calls(trace)]


def impossible(trace: Trace, found: Sequence[Message]) -> list[Impossible]:
    """What is in the wrong order on a single clock, where nothing can be corrected."""
    wrong = []
    for span in trace.spans():
        what = f"{span.name} (span {span.id} of {span.process.title})"
        if span.end < span.begin:
            wrong.append(Impossible(f"{what} ends before it begins", span.begin - span.end))
        parent = span.process.parent(span)
        if parent is not None and span.begin < parent.begin:
            wrong.append(Impossible(f"{what} begins before {parent.name} around it", parent.begin - span.begin))
    for message in found:
        if message.sender.clock == message.receiver.clock and message.received < message.sent:
            wrong.append(Impossible(f"{message} arrives before it is sent", message.sent - message.received))
    return wrong


def _points(trace: Trace) -> Iterator[Message]:
    sent, received = _by_id(trace.points(SENT)), _by_id(trace.points(RECEIVED))
    for name, arrivals in received.items():
        for arrival in arrivals:
            senders = [each for each in sent.get(name, ()) if each.process is not arrival.process]
            if len({id(each.process) for each in senders}) != 1:
                continue
            # Sent again: the first is what all arrivals come after.
            first = min(senders, key=lambda each: each.monotonic)
            yield Message(first.process, first.monotonic, arrival.process, arrival.monotonic, f"message {name}")


def _by_id(points: Sequence[Point]) -> dict[str, list[Point]]:
    found: dict[str, list[Point]] = {}
    for point in points:
        name = point.values.get("message")
        if isinstance(name, (str, int)):
            found.setdefault(str(name), []).append(point)
    return found


def is_server(span: Span) -> bool:
    """Whether it is a request that a server serves, such as ``glance.request``."""
    return span.name.endswith(SERVER_SUFFIX) and span.name != CALLER


def _calls(trace: Trace) -> Iterator[Message]:
    callers = _by_global(span for span in trace.spans() if span.name == CALLER)
    servers = _by_global(span for span in trace.spans() if is_server(span))
    for name, served in servers.items():
        for calling, server in pairs(callers.get(name, []), served):
            first, last = calling[0], calling[-1]
            yield Message(first.process, first.begin, server.process, server.begin, f"{CALLER} of {name}")
            if _answered(last):
                what = f"answer to {CALLER} of {name}"
                yield Message(server.process, server.begin, last.process, last.end, what)


def _by_global(spans: Iterable[Span]) -> dict[str, list[Span]]:
    found: dict[str, list[Span]] = {}
    for span in spans:
        if span.text("global"):
            found.setdefault(span.text("global"), []).append(span)
    for group in found.values():
        group.sort(key=lambda span: span.begin)
    return found


def pairs(callers: Sequence[Span], servers: Sequence[Span]) -> Iterator[tuple[list[Span], Span]]:
    """Each server span with its caller's span, or with all of them where it may be any.

    Both are in the order of their beginnings. Nothing if callers are of several processes: it is not known then which
    of them it was.
    """
    if not callers or len({id(each.process) for each in callers}) != 1:
        return
    servers = [each for each in servers if each.process is not callers[0].process]
    same = len(callers) == len(servers) and len({each.process.clock for each in servers}) == 1
    apart = all(first.end <= then.begin for first, then in zip(callers, callers[1:], strict=False))
    for index, server in enumerate(servers):
        yield ([callers[index]] if same and apart else list(callers)), server


def _answered(caller: Span) -> bool:
    """Whether the caller waited for the end of the answer, rather than leaving before."""
    return caller.text("outcome") == "ok"
