"""The content of a trace: processes, their spans and points, and the problems of the files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fastio.errors import FastioError


class TraceError(FastioError):
    """There is nothing to analyse, or something that the analysis needs is not installed; the message says what."""


class Problem(NamedTuple):
    """Something in a file that could not be read, or that cannot be right."""

    file: str
    #: counted from 1
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


class Point(NamedTuple):
    """A moment in a span: a message that was sent or received."""

    process: Process
    #: the process's monotonic clock, in ns
    time: int
    name: str
    #: the id of the message
    message: Any


@dataclass(slots=True, eq=False)
class Span:
    """Something that took its time."""

    process: Process
    #: 16 hexadecimal digits
    id: str
    #: the id of the span around it, in the same process or the caller's
    parent: str | None
    #: the id of its trace, 32 hexadecimal digits
    trace: str
    name: str
    #: the process's monotonic clock, in ns
    begin: int
    end: int
    values: dict[str, Any] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)
    #: on the clock that all share, ns since 1970; ``fastio.trace.analysis.clocks`` fills them in
    start: int = 0
    finish: int = 0

    @property
    def duration(self) -> int:
        """Nanoseconds on the process's own clock."""
        return max(self.end - self.begin, 0)

    @property
    def component(self) -> str:
        """``store.swift`` of ``store.swift.add``, ``glance`` of ``glance.request``."""
        parts = self.name.split(".")
        return ".".join(parts[:2]) if parts[0] == "store" and len(parts) > 2 else parts[0]

    @property
    def is_call(self) -> bool:
        """Whether it is a request that a client makes."""
        return self.name == "client.request"

    @property
    def is_server(self) -> bool:
        """Whether it is a request that a server serves, such as ``glance.request``."""
        return self.name.endswith(".request") and not self.is_call

    def around(self) -> Iterator[Span]:
        """The spans around this one in its process, from the next one to the outermost."""
        # Damaged files can have spans that are within each other.
        seen = {self.id}
        outer = self.process.parent(self)
        while outer is not None and outer.id not in seen:
            seen.add(outer.id)
            yield outer
            outer = outer.process.parent(outer)

    def text(self, name: str) -> str:
        """A value that should be a text; empty if it is not there or is something else."""
        value = self.values.get(name)
        return value if isinstance(value, str) else ""

    def number_of(self, name: str) -> int:
        """A value that should be a number; 0 if it is not there or is something else."""
        value = self.values.get(name)
        return value if isinstance(value, int) else 0


@dataclass(eq=False)
class Process:
    """One process of one host, of all of its files."""

    host: str
    pid: int
    #: boot of the host's kernel: the monotonic clocks of one boot are one clock
    boot: str
    component: str
    program: str
    #: distinguishes two processes of one host that had the same number
    started: str = ""
    #: ns from its monotonic clock to its wall clock
    clock_offset: int = 0
    #: spans that it could not keep
    lost: int = 0
    spans: dict[str, Span] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)

    @property
    def clock(self) -> str:
        """Name of the clock of its monotonic times."""
        return f"{self.host} (boot {self.boot[:8]})" if self.boot else self.host

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.component} {self.pid} on {self.host}"

    def parent(self, span: Span) -> Span | None:
        """The span around ``span``; None if there is none in this process."""
        return None if span.parent is None or span.parent == span.id else self.spans.get(span.parent)


@dataclass
class Trace:
    """All that was read."""

    processes: list[Process] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    #: files, lines, spans, duplicate spans, unreadable lines, and so on, by name
    counts: Counter[str] = field(default_factory=Counter)

    def spans(self) -> list[Span]:
        """Return the spans of all processes."""
        return [span for process in self.processes for span in process.spans.values()]
