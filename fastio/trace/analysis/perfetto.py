"""The spans as Chrome's trace events in JSON, for https://ui.perfetto.dev and chrome://tracing.

Each process is one of Chrome's, with the host in its name, and each thread or greenlet one of its threads. Spans of one
thread that overlap without being within each other, as a store's data and the body that it is sent in, are put on
several rows. A client's request and its server's are joined by an arrow; samples of resources are counters.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from fastio.trace.analysis.analysis import Analysis
from fastio.trace.analysis.model import Process, Span, number
from fastio.trace.analysis.requests import Request
from fastio.trace.analysis.resources import SAMPLE

#: Counters of a process: what the sample calls it, its name, and what a unit of it is.
_COUNTERS = (("rss", "memory MiB", 1 << 20), ("threads", "threads", 1), ("fds", "descriptors", 1))


def export(analysis: Analysis, requests: Sequence[Request] | None = None) -> dict[str, Any]:
    """Plain data: the object format of the trace events.

    :param requests: only these; by default all, and what belongs to no request
    """
    if requests is None:
        spans = analysis.trace.spans()
    else:
        spans = list({id(span): span for request in requests for span in request.spans}.values())
    starts = [span.start for span in spans] or [0]
    made = _Events(min(starts), analysis.trace.processes)
    events = list(made.of_spans(spans))
    for index, request in enumerate(analysis.requests if requests is None else requests):
        events += made.arrow(index, request)
    if requests is None:
        events += made.counters()
    return {"traceEvents": [*made.names(), *events], "displayTimeUnit": "ms", "otherData": {"begin": str(min(starts))}}


class _Events:
    """Makes events, and gives processes and threads numbers that are unique across hosts."""

    def __init__(self, begin: int, processes: Sequence[Process]) -> None:
        self._begin = begin
        self._processes = {id(process): (number, process) for number, process in enumerate(processes, 1)}
        #: (process, thread, row) and the number it got
        self._threads: dict[tuple[int, int, int], int] = {}
        self._rows: dict[int, int] = {}

    def of_spans(self, spans: Sequence[Span]) -> Iterator[dict[str, Any]]:
        by_thread: dict[tuple[int, int], list[Span]] = {}
        for span in spans:
            by_thread.setdefault((id(span.process), span.thread), []).append(span)
        for (process, thread), own in by_thread.items():
            for span, row in rows(own):
                yield self._span(span, self._thread(process, thread, row))

    def _span(self, span: Span, thread: int) -> dict[str, Any]:
        self._rows[id(span)] = thread
        return {
            "ph": "X",
            "name": span.name,
            "cat": span.component,
            "pid": self._processes[id(span.process)][0],
            "tid": thread,
            "ts": self._time(span.start),
            "dur": max(span.finish - span.start, 0) / 1000,
            "args": span.values if span.whole else {**span.values, "incomplete": True},
        }

    def arrow(self, index: int, request: Request) -> list[dict[str, Any]]:
        """From a client's request to its server's."""
        if request.client is None or request.server is None:
            return []
        common = {"name": request.kind.name, "cat": "request", "id": index}
        return [
            {**common, "ph": "s", **self._place(request.client)},
            {**common, "ph": "f", "bp": "e", **self._place(request.server)},
        ]

    def _place(self, span: Span) -> dict[str, Any]:
        number = self._processes[id(span.process)][0]
        return {"pid": number, "tid": self._rows[id(span)], "ts": self._time(span.start)}

    def counters(self) -> Iterator[dict[str, Any]]:
        for pid, process in self._processes.values():
            for point in process.points:
                if point.name == SAMPLE and point.time >= self._begin:
                    for value, name, scale in _COUNTERS:
                        figure = number(point.values.get(value))
                        if figure is not None:
                            common = {"ph": "C", "name": name, "pid": pid, "tid": 0, "ts": self._time(point.time)}
                            yield {**common, "args": {name: figure / scale}}

    def names(self) -> Iterator[dict[str, Any]]:
        for pid, process in self._processes.values():
            yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": process.title}}
        for (process_id, thread, row), tid in self._threads.items():
            title = f"{thread}" if row == 0 else f"{thread} ({row + 1})"
            pid = self._processes[process_id][0]
            yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": title}}

    def _thread(self, process: int, thread: int, row: int) -> int:
        return self._threads.setdefault((process, thread, row), len(self._threads) + 1)

    def _time(self, ns: int) -> float:
        return (ns - self._begin) / 1000


def rows(spans: Sequence[Span]) -> Iterator[tuple[Span, int]]:
    """Each span of a thread with a row in which it is within the others or beside them."""
    stacks: list[list[int]] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.finish, span.number)):
        for stack in stacks:
            while stack and stack[-1] <= span.start:
                stack.pop()
        row = next((row for row, stack in enumerate(stacks) if not stack or span.finish <= stack[-1]), len(stacks))
        if row == len(stacks):
            stacks.append([])
        stacks[row].append(span.finish)
        yield span, row
