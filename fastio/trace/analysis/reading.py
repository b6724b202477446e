"""Read the files of many processes and hosts, whatever state they are in.

Files may come in any order, twice, cut off or damaged: a line that cannot be read is told with its file and number and
left out, and the rest counts. A line that is there twice counts once.
"""

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from fastio.trace.analysis.model import Point, Problem, Process, Span, Trace, TraceError

#: The version of the files that this reads, in their first line.
FORMAT = 1
FORMAT_KEY = "fastio-trace"
#: No event is this long: it is not read into memory.
LONGEST_LINE = 1 << 20
#: Of one file, more problems than this are counted only.
MOST_PROBLEMS = 20
#: Times are signed 64 bits.
_LATEST = 1 << 63

#: The name of a file, if nobody has renamed it.
NAME = re.compile(r"(?P<host>.+)-(?P<pid>\d+)-(?P<started>\d+)-(?P<file>\d+)\.jsonl(\.gz)?")
_SUFFIXES = (".jsonl", ".jsonl.gz")


class Unfit(Exception):
    """A line is no event, for this reason."""


@dataclass
class File:
    """The lines of a file, as they were read."""

    path: Path
    header: dict[str, Any] | None = None
    #: (line number, event)
    events: list[tuple[int, list]] = field(default_factory=list)
    #: (line number, "end" or "lost" line)
    notes: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    problems: int = 0


def read(paths: Iterable[str | Path]) -> Trace:
    """Read directories (with all that is below them) and files.

    :raises TraceError: if a path does not exist, or there is no file of a trace at all
    """
    trace = Trace()
    files = [_read(path, trace) for path in find(paths)]
    groups: dict[tuple, list[File]] = {}
    for each, key in zip(files, _keys(files), strict=True):
        if key is None:
            if each.events or each.notes:
                report(trace, each, 0, f"no first line that tells the process: {len(each.events)} events left out")
        else:
            groups.setdefault(key, []).append(each)
    for key in sorted(groups):
        trace.processes.append(_process(groups[key], key, trace))
    if not any(process.spans or process.points for process in trace.processes):
        details = "".join(f"\n  {problem}" for problem in trace.problems[:5])
        raise TraceError(f"{', '.join(map(str, paths))}: no events in {trace.counts['files']} files{details}")
    trace.counts["processes"] = len(trace.processes)
    trace.counts["hosts"] = len({process.host for process in trace.processes})
    trace.counts["lost events"] = sum(process.lost for process in trace.processes)
    trace.counts["processes without an end"] = sum(not process.ended for process in trace.processes)
    return trace


def find(paths: Iterable[str | Path]) -> list[Path]:
    """The files of a trace in these directories, and the files that are named; each once, in the order of their names.

    :raises TraceError: if a path does not exist, or there is none
    """
    found: dict[Path, Path] = {}
    named = [Path(path) for path in paths]
    for path in named:
        if path.is_dir():
            inside = [each for each in path.rglob("*.jsonl*") if each.name.endswith(_SUFFIXES) and each.is_file()]
        elif path.exists():
            inside = [path]
        else:
            raise TraceError(f"{path}: no such file or directory")
        for each in inside:
            found.setdefault(each.resolve(), each)
    if not found:
        raise TraceError(f"{', '.join(map(str, named))}: no files of a trace, which end in {' or '.join(_SUFFIXES)}")
    return sorted(found.values(), key=lambda path: (path.name, str(path)))


def report(trace: Trace, file: File, line: int, what: str) -> None:
    """Note a problem of a file."""
    file.problems += 1
    trace.counts["problems"] += 1
    if file.problems <= MOST_PROBLEMS:
        trace.problems.append(Problem(str(file.path), line, what))
    elif file.problems == MOST_PROBLEMS + 1:
        trace.problems.append(Problem(str(file.path), line, "and more of the kind, which are counted only"))


def _read(path: Path, trace: Trace) -> File:
    made = File(path)
    trace.counts["files"] += 1
    line = 0
    try:
        with _open(path) as stream:
            for line, raw in _lines(stream):
                trace.counts["lines"] += 1
                try:
                    take(made, line, raw)
                except Unfit as reason:
                    cut = raw is not None and not raw.endswith(b"\n")
                    trace.counts["truncated files" if cut else "unreadable lines"] += 1
                    report(trace, made, line, f"cut off in this line ({reason})" if cut else str(reason))
    except (OSError, EOFError, zlib.error) as error:
        # Of a damaged or cut off .gz all that came before counts.
        trace.counts["truncated files" if isinstance(error, EOFError) else "unreadable files"] += 1
        report(trace, made, line + 1, f"cannot be read on from here: {type(error).__name__}: {error}")
    return made


def _open(path: Path) -> BinaryIO:
    return gzip.open(path) if path.name.endswith(".gz") else path.open("rb")  # type: ignore[return-value]


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """The lines that are not empty, with their numbers; None for one that is too long."""
    number = 0
    while raw := stream.readline(LONGEST_LINE):
        number += 1
        if len(raw) == LONGEST_LINE and not raw.endswith(b"\n"):
            while (more := stream.readline(LONGEST_LINE)) and not more.endswith(b"\n"):
                pass
            yield number, None
        elif not raw.isspace():
            yield number, raw


def take(made: File, line: int, raw: bytes | None) -> None:
    """Take a line of a file; None is one that is too long.

    :raises Unfit: if it can be none of a trace's
    """
    if raw is None:
        raise Unfit(f"longer than {LONGEST_LINE} bytes")
    try:
        value = json.loads(raw)
    except UnicodeDecodeError:
        raise Unfit("not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise Unfit(f"not JSON: {error}") from None
    if isinstance(value, list):
        made.events.append((line, _checked(value)))
    elif not isinstance(value, dict):
        raise Unfit("neither an event nor a header")
    elif FORMAT_KEY in value:
        header = _checked_header(value)
        if made.header is None:
            made.header = header
        elif header != made.header:
            raise Unfit("a second header, which is not the first: two files in one?")
    elif "end" in value or "lost" in value:
        made.notes.append((line, value))
    else:
        raise Unfit("an object that is no header, end or count of lost events")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_LATEST <= value < _LATEST


#: What each of an event's seven elements has to be.
_ELEMENTS: Sequence[tuple[str, Callable[[Any], bool]]] = (
    ('kind is not "B", "E" or "P"', lambda value: value in ("B", "E", "P")),
    ("monotonic time is no whole number of ns", lambda value: _whole(value) and value >= 0),
    ("span is no whole number", lambda value: value is None or _whole(value)),
    ("parent is no whole number", lambda value: value is None or _whole(value)),
    ("name is no text", lambda value: isinstance(value, str) and bool(value)),
    ("thread is no whole number", lambda value: value is None or _whole(value)),
    ("values are no object", lambda value: value is None or isinstance(value, dict)),
)


def _checked(event: list) -> list:
    if len(event) != len(_ELEMENTS):
        raise Unfit(f"an event of {len(event)} elements instead of {len(_ELEMENTS)}")
    for value, (complaint, fits) in zip(event, _ELEMENTS, strict=True):
        if not fits(value):
            raise Unfit(f"{complaint}: {json.dumps(value)[:80]}")
    if event[0] != "P" and event[2] is None:
        raise Unfit(f"{event[0]} without the number of its span")
    return event


def _checked_header(header: dict[str, Any]) -> dict[str, Any]:
    if header[FORMAT_KEY] != FORMAT:
        raise Unfit(f"version {header[FORMAT_KEY]!r} of the format, known is {FORMAT}")
    for name, kind in (("host", str), ("pid", int), ("monotonic", int), ("wall", int)):
        if not isinstance(header.get(name), kind) or (kind is int and not _whole(header[name])):
            raise Unfit(f"header: {name} is {header.get(name)!r}, not {'a text' if kind is str else 'a whole number'}")
    return header


def _keys(files: Sequence[File]) -> list[tuple | None]:
    """To which process each file belongs: (host, boot, pid, moment of its start).

    The moment is known from the name alone. A copy with another name belongs to the process that has the same header; a
    file without its header to the one whose files have such a name.
    """
    moments: dict[str, str] = {}
    boots: dict[tuple[str, int], set[str]] = {}
    for each in files:
        if each.header is not None:
            header = each.header
            boots.setdefault((header["host"], header["pid"]), set()).add(boot_of(header))
            if found := NAME.fullmatch(each.path.name):
                moments.setdefault(_sameness(header), found["started"])
    keys: list[tuple | None] = []
    for each in files:
        found = NAME.fullmatch(each.path.name)
        if each.header is not None:
            moment = found["started"] if found else moments.get(_sameness(each.header), "")
            keys.append((each.header["host"], boot_of(each.header), each.header["pid"], moment))
        elif found and len(known := boots.get((found["host"], int(found["pid"])), set())) == 1:
            keys.append((found["host"], *known, int(found["pid"]), found["started"]))
        else:
            keys.append(None)
    return keys


def boot_of(header: dict[str, Any]) -> str:
    """The boot of the kernel that a first line tells, empty if it does not."""
    return header["boot"] if isinstance(header.get("boot"), str) else ""


def _sameness(header: dict[str, Any]) -> str:
    return json.dumps(header, sort_keys=True)


def _process(files: Sequence[File], key: tuple, trace: Trace) -> Process:
    host, boot, pid, moment = key
    made = Process(host, pid, boot, component="", program="", started=moment)
    seen: set[str] = set()
    announced = dropped = 0
    for file in files:
        if file.header is not None:
            describe(made, file.header)
        for line, event in file.events:
            add(made, file, line, event, seen, trace)
        for line, note in file.notes:
            text = json.dumps(note, sort_keys=True)
            lost = note.get("lost", 0)
            if text in seen:
                trace.counts["duplicate lines"] += 1
            elif not _whole(lost) or lost < 0:
                report(trace, file, line, f"lost is no count: {lost!r}")
            elif "end" in note:
                made.ended, announced = True, max(announced, lost)
            else:
                dropped += lost
            seen.add(text)
    # A process that has not begun its service when its first file begins does not know yet what it is.
    made.component = made.component or made.program or "unknown"
    made.lost = max(announced, dropped)
    made.anchors.sort()
    _count_incomplete(made, trace)
    return made


def describe(process: Process, header: dict[str, Any]) -> None:
    """Add what the first line of one of its files says of a process."""
    for name in ("component", "program", "os", "runtime", "arch", "kernel"):
        setattr(process, name, str(header.get(name) or getattr(process, name)))
    namespace = header.get("namespace")
    if isinstance(namespace, int):
        process.namespace = namespace
    versions = header.get("versions")
    process.versions.update(versions if isinstance(versions, dict) else {})
    anchor = (header["monotonic"], header["wall"])
    if anchor not in process.anchors:
        process.anchors.append(anchor)


def add(process: Process, file: File, line: int, event: list, seen: set[str], trace: Trace) -> None:
    """Add an event to its process."""
    kind, moment, number, parent, name, thread, values = event
    if kind == "P":
        text = json.dumps(event, sort_keys=True)
        if text in seen:
            trace.counts["duplicate lines"] += 1
            return
        seen.add(text)
        process.points.append(Point(process, moment, number, name, thread or 0, values or {}))
        trace.counts["events"] += 1
        return
    span = process.spans.get(number)
    if span is None:
        span = process.spans[number] = Span(process, number, parent, name, thread or 0)
    known = span.begin if kind == "B" else span.end
    if known is not None:
        trace.counts["duplicate lines"] += 1
        if known != moment or span.name != name:
            report(trace, file, line, f"{kind} of span {number} ({name}) again, and not the same: the first counts")
        return
    trace.counts["events"] += 1
    if kind == "B":
        # The values of the end win, whichever line came first.
        span.begin, span.parent, span.name, span.thread = moment, parent, name, thread or 0
        span.values = {**(values or {}), **span.values}
    else:
        span.end = moment
        span.values = {**span.values, **(values or {})}


def _count_incomplete(process: Process, trace: Trace) -> None:
    """Count what is not whole; the analysis tells what that means for the requests."""
    for span in process.spans.values():
        if span.begin is None:
            trace.counts["ends without a beginning"] += 1
        elif span.end is None:
            trace.counts["beginnings without an end"] += 1
        elif span.end < span.begin:
            trace.counts["ends before their beginning"] += 1
