"""Read the files of many processes and hosts, whatever state they are in.

Files may come in any order, twice, cut off or damaged: a line that cannot be read is reported with its file and number
and left out, and the rest counts. A span that is there twice counts once. All of it is foreign data: what is kept of it
is bounded, and its texts can be printed.
"""

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from fastio.tables import printable
from fastio.trace.analysis.model import Point, Problem, Process, Span, Trace, TraceError
from fastio.trace.otlp import BOOT, CLOCK, NAMES, PREFIX

#: No line is this long: it is not read into memory.
LONGEST_LINE = 1 << 20
#: Bytes of one uncompressed file, and spans of all files.
MOST_BYTES, MOST_SPANS = 8 << 30, 5_000_000
#: Characters of a text, and values of a span, that are kept.
LONGEST_TEXT, MOST_VALUES = 300, 64
#: Of one file, more problems than this are counted only.
MOST_PROBLEMS = 20
_SUFFIXES = (".jsonl", ".jsonl.gz")
#: Times are signed 64 bits.
_LATEST = 1 << 63
_WHOLE = re.compile("-?[0-9]{1,19}")
_SPAN_ID, _TRACE_ID = re.compile("[0-9a-f]{16}", re.I), re.compile("[0-9a-f]{32}", re.I)
_ERROR = 2
_OWN = {shown: name for name, shown in NAMES.items()}


class Unfit(Exception):
    """A line is no part of a trace, for this reason."""


class _File:
    """A file, and what was wrong with it."""

    def __init__(self, path: Path, trace: Trace) -> None:
        self._path = path
        self._trace = trace
        self._problems = 0

    def report(self, line: int, what: str) -> None:
        """Note a problem."""
        self._problems += 1
        if self._problems <= MOST_PROBLEMS + 1:
            more = "and more of the kind, which are counted only"
            shown = clean(what) if self._problems <= MOST_PROBLEMS else more
            self._trace.problems.append(Problem(clean(str(self._path)), line, shown))

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """The lines that are not empty, with their numbers."""
        line = size = 0
        within_a_long_one = False
        try:
            with _open(self._path) as stream:
                while raw := stream.readline(LONGEST_LINE):
                    size += len(raw)
                    if size > MOST_BYTES:
                        self.report(line + 1, f"more than {MOST_BYTES} bytes: the rest is left out")
                        return
                    known_as_long, within_a_long_one = within_a_long_one, len(raw) == LONGEST_LINE and raw[-1:] != b"\n"
                    if known_as_long:
                        continue
                    line += 1
                    if within_a_long_one:
                        self._trace.counts["unreadable lines"] += 1
                        self.report(line, f"longer than {LONGEST_LINE} bytes")
                    elif not raw.isspace():
                        yield line, raw
        except (OSError, EOFError, zlib.error) as error:
            # Of a damaged or cut off .gz all that came before counts.
            self._trace.counts["truncated files" if isinstance(error, EOFError) else "unreadable files"] += 1
            self.report(line + 1, f"cannot be read on from here: {type(error).__name__}: {error}")


def clean(text: str) -> str:
    """``text`` with escapes for what is not printable, and no longer than what is kept of texts."""
    shown = printable(text[:LONGEST_TEXT], "")
    return shown if len(text) <= LONGEST_TEXT else shown + "..."


def read(paths: Iterable[str | Path]) -> Trace:
    """Read directories (with all that is below them) and files.

    :raises TraceError: if a path does not exist, or there is no file of a trace at all
    """
    trace = Trace()
    processes: dict[str, Process] = {}
    for path in find(paths):
        trace.counts["files"] += 1
        file = _File(path, trace)
        for line, raw in file.lines():
            trace.counts["lines"] += 1
            try:
                _take(raw, processes, trace)
            except Unfit as reason:
                cut = not raw.endswith(b"\n")
                trace.counts["truncated files" if cut else "unreadable lines"] += 1
                file.report(line, f"cut off in this line ({reason})" if cut else str(reason))
    trace.processes = [each for _, each in sorted(processes.items()) if each.spans]
    if not trace.processes:
        details = "".join(f"\n  {problem}" for problem in trace.problems[:5])
        raise TraceError(f"{', '.join(map(str, paths))}: no spans in {trace.counts['files']} files{details}")
    trace.counts["processes"] = len(trace.processes)
    trace.counts["hosts"] = len({process.host for process in trace.processes})
    trace.counts["lost spans"] = sum(process.lost for process in trace.processes)
    return trace


def find(paths: Iterable[str | Path]) -> list[Path]:
    """The files of a trace in these directories, and the files that are named; each once, in the order of their names.

    :raises TraceError: if a path does not exist or is no file, or there is none
    """
    found: dict[Path, Path] = {}
    named = [Path(path) for path in paths]
    for path in named:
        if path.is_dir():
            inside = [each for each in path.rglob("*.jsonl*") if each.name.endswith(_SUFFIXES) and each.is_file()]
        elif path.is_file():
            inside = [path]
        else:
            raise TraceError(f"{path}: {'no regular file' if path.exists() else 'no such file or directory'}")
        for each in inside:
            found.setdefault(each.resolve(), each)
    if not found:
        raise TraceError(f"{', '.join(map(str, named))}: no files of a trace, which end in {' or '.join(_SUFFIXES)}")
    return sorted(found.values(), key=lambda path: (path.name, str(path)))


def _open(path: Path) -> BinaryIO:
    return gzip.open(path) if path.name.endswith(".gz") else path.open("rb")  # type: ignore[return-value]


def _take(raw: bytes, processes: dict[str, Process], trace: Trace) -> None:
    """Add what a line has.

    :raises Unfit: if it is no part of a trace; nothing of it is added then
    """
    try:
        value = json.loads(raw)
    except UnicodeDecodeError:
        raise Unfit("not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise Unfit(f"not JSON: {error}") from None
    if not isinstance(value, dict) or "resourceSpans" not in value:
        raise Unfit("no object with resourceSpans")
    found = []
    for resource in _objects(value, "resourceSpans"):
        about = resource.get("resource")
        process = _process(_values(about) if isinstance(about, dict) else {})
        for scope in _objects(resource, "scopeSpans"):
            found += [(process, _span(process, each)) for each in _objects(scope, "spans")]
    for process, span in found:
        if trace.counts["spans"] >= MOST_SPANS:
            raise Unfit(f"more than {MOST_SPANS} spans in all: left out")
        # The name of a service is known better as time goes on.
        known = processes.setdefault(process.started, process)
        known.component = process.component if process.component != process.program else known.component
        _add(known, span, trace)


def _add(process: Process, span: Span, trace: Trace) -> None:
    before = process.spans.setdefault(span.id, span)
    if before is not span:
        trace.counts["duplicate spans"] += 1
        if (before.name, before.begin, before.end) != (span.name, span.begin, span.end):
            raise Unfit(f"span {span.id} ({span.name}) again, and not the same: the first counts")
        return
    trace.counts["spans"] += 1
    span.process = process
    process.lost = max(process.lost, span.number_of("lost"))
    process.points += [point._replace(process=process) for point in span.points]


def _objects(value: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = value.get(name, [])
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise Unfit(f"{name} is no list of objects")
    return found


def _whole(value: Any) -> int | None:
    """A number of 64 bits, which is a text in OTLP's JSON, or may be."""
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    known = isinstance(value, int) and not isinstance(value, bool) and -_LATEST <= value < _LATEST
    return value if known else None


def _values(value: Mapping[str, Any]) -> dict[str, Any]:
    """Texts and whole numbers among attributes, by the names that fastio's own recorder has for them."""
    found: dict[str, Any] = {}
    for each in _objects(value, "attributes")[:MOST_VALUES]:
        name, given = each.get("key"), each.get("value")
        if not isinstance(name, str) or not isinstance(given, dict):
            raise Unfit("an attribute is no key with a value")
        text, number = given.get("stringValue"), _whole(given.get("intValue"))
        if isinstance(text, str):
            found[_name(name)] = clean(text)
        elif number is not None:
            found[_name(name)] = number
    return found


def _name(shown: str) -> str:
    return clean(_OWN.get(shown) or shown.removeprefix(PREFIX))


def _process(about: Mapping[str, Any]) -> Process:
    def text(name: str) -> str:
        value = about.get(name)
        return value if isinstance(value, str) else ""

    def number(name: str) -> int:
        value = about.get(name)
        return value if isinstance(value, int) else 0

    host, pid = text("host.name"), number("process.pid")
    service = text("service.name") or "unknown"
    # A span of another recorder may have no id.
    started = text("service.instance.id") or f"{host} {pid} {service}"
    made = Process(host, pid, text(BOOT.removeprefix(PREFIX)), service, text("process.executable.name"), started)
    made.clock_offset = number(CLOCK.removeprefix(PREFIX))
    return made


def _span(process: Process, given: Mapping[str, Any]) -> Span:
    identity, trace, name, parent = (given.get(each) for each in ("spanId", "traceId", "name", "parentSpanId"))
    if not isinstance(identity, str) or not _SPAN_ID.fullmatch(identity):
        raise Unfit("spanId is not 16 hexadecimal digits")
    if not isinstance(trace, str) or not _TRACE_ID.fullmatch(trace):
        raise Unfit("traceId is not 32 hexadecimal digits")
    if parent and not (isinstance(parent, str) and _SPAN_ID.fullmatch(parent)):
        raise Unfit("parentSpanId is not 16 hexadecimal digits")
    if not isinstance(name, str) or not name:
        raise Unfit("name is no text")
    begin, end = (_time(process, given, each) for each in ("startTimeUnixNano", "endTimeUnixNano"))
    values = _values(given)
    status = given.get("status")
    if "outcome" not in values:
        # Another recorder's.
        values["outcome"] = "error" if isinstance(status, dict) and status.get("code") == _ERROR else "ok"
    made = Span(process, identity.lower(), parent.lower() if parent else None, trace.lower(), clean(name), begin, end)
    made.values = values
    for each in _objects(given, "events")[:MOST_VALUES]:
        what = each.get("name")
        if isinstance(what, str):
            message = _values(each).get("message")
            made.points.append(Point(process, _time(process, each, "timeUnixNano"), clean(what), message))
    return made


def _time(process: Process, given: Mapping[str, Any], name: str) -> int:
    """A time on the process's own clock."""
    found = _whole(given.get(name))
    if found is None or found < 0:
        raise Unfit(f"{name} is no time in ns")
    return found - process.clock_offset
