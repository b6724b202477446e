"""Reads the files of a trace while they are written, and remembers what of them has been sent.

A span can be sent once it has ended, and so has the outermost span around it: only then it is known of which trace it
is. What is read and not sent yet is held here, and is in the file of the position, too. So who begins anew reads no
byte twice, and sends nothing twice that was sent when the position was written.

While nothing can be sent nothing more is read: the files are the buffer.
"""

import fcntl
import json
import os
import socket
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from fastio.trace.analysis import clocks, otlp, reading
from fastio.trace.analysis.model import Point, Process, Span, Trace, TraceError
from fastio.trace.analysis.requests import requests
from fastio.trace.analysis.rules import Rules
from fastio.trace.files import boot_id, pid_namespace

#: Bytes that are read at a time, of all files together.
PIECE = 4 << 20
#: Spans that are held until they can be sent. With more, some are sent before the outermost one around them has ended.
MOST_HELD = 20_000
#: Seconds of silence after which the ended spans of a process go out without the outermost ones around them, which have
#: not ended; and those after which it counts as over, if nothing else tells.
SILENT, OVER = 60.0, 86400.0
#: Spans of a process that are remembered after they were sent: what comes later may be within them, or called by them.
REMEMBERED = 100
#: Bytes before a position by which a file is known again.
_KNOWN_BY = 256
#: First lines of a process that are remembered: they tell its clock.
_HEADERS = 8
_FORMAT_KEY, _FORMAT = "fastio-trace-position", 1


@dataclass
class _Place:
    """How far a file was read."""

    offset: int = 0
    lines: int = 0
    #: of the bytes before it
    check: int = 0
    #: nothing is added to the file any more
    whole: bool = False

    def to_list(self) -> list[int]:
        return [self.offset, self.lines, self.check, int(self.whole)]


@dataclass(eq=False)
class _Held:
    """A process, and what is known of it."""

    process: Process
    files: dict[int, _Place] = field(default_factory=dict)
    headers: list[dict[str, Any]] = field(default_factory=list)
    #: the events of spans as they were read, by the number of the span
    events: dict[int, list[list[Any]]] = field(default_factory=dict)
    #: numbers of the spans that were sent and are remembered, in the order in which they were
    sent: dict[int, None] = field(default_factory=dict)
    #: numbers of the spans that could be sent when this was last asked
    seen: set[int] = field(default_factory=set)
    #: when one of the files was last written, in seconds since 1970
    written: float = 0.0
    #: it was gone before its files were read
    gone: bool = False

    def unsent(self) -> list[Span]:
        return [span for number, span in self.process.spans.items() if number not in self.sent]

    def around_unsent(self) -> set[int]:
        """The numbers of the spans that have one within them that was not sent."""
        return {outer.number for span in self.unsent() for outer in span.around()}


class Follower:
    """The files of these directories, from a position on.

    :param position: the file that has it; it need not be there
    :param tell: told, in words, of what cannot be read or is not there any more
    :raises TraceError: if a directory does not exist, or the position cannot be had
    """

    def __init__(self, directories: Iterable[Path], rules: Rules, position: Path, tell: Callable[[str], None]) -> None:
        self._directories = list(directories)
        for each in self._directories:
            if not each.is_dir():
                raise TraceError(f"{each}: no such directory")
        self._rules = rules
        self._position = position
        self._tell = tell
        self._host = socket.gethostname()
        self._boot, self._namespace = boot_id(), pid_namespace()
        self._held: dict[str, _Held] = {}
        #: where the reader tells problems
        self._trace = Trace()
        self._lock = self._locked()
        try:
            self._load()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let somebody else have the position."""
        os.close(self._lock)

    @property
    def full(self) -> bool:
        """Whether as much is held as may be."""
        return sum(len(held.process.spans) - len(held.sent) for held in self._held.values()) >= MOST_HELD

    # Reading.

    def read(self) -> bool:
        """Read what is new, as much as there is room for; returns whether there is more.

        :raises OSError: if a directory or a file cannot be read now
        """
        found = self._find()
        left = PIECE
        again = False
        for key, paths in found.items():
            held = self._held.get(key) or self._begin(key)
            # Looked at first: what it has written until then is in the files.
            known, held.gone = bool(held.headers), self._is_gone(held.process)
            self._miss(held, paths)
            for number in sorted(paths):
                place = held.files.setdefault(number, _Place())
                if place.whole:
                    continue
                if left <= 0:
                    return True
                try:
                    taken, more = self._read(held, place, paths[number], left)
                except FileNotFoundError:
                    # Removed just now, to make room.
                    continue
                left -= taken
                if more:
                    return True
                # Its next file is begun when nothing is added to this one any more.
                place.whole = number < max(paths) or held.process.ended
            # Which process it was is known only now.
            again |= not known and self._is_gone(held.process)
        for key in [key for key in self._held if key not in found]:
            held = self._held[key]
            held.gone = True
            self._miss(held, {})
            if not held.unsent():
                del self._held[key]
        return again

    def _find(self) -> dict[str, dict[int, Path]]:
        """The files that are there, by process and number."""
        found: dict[str, dict[int, Path]] = {}
        for directory in self._directories:
            for parent, _, names in os.walk(directory, onerror=_raise):
                for name in names:
                    fits = reading.NAME.fullmatch(name)
                    if fits and not fits[5]:
                        process = found.setdefault(name.rpartition("-")[0], {})
                        process.setdefault(int(fits["file"]), Path(parent, name))
        return dict(sorted(found.items()))

    def _begin(self, key: str) -> _Held:
        fits = reading.NAME.fullmatch(f"{key}-0.jsonl")
        assert fits is not None
        process = Process(fits["host"], int(fits["pid"]), boot="", component="", program="", started=fits["started"])
        held = self._held[key] = _Held(process)
        return held

    def _is_gone(self, process: Process) -> bool:
        """Whether the process is known to be there no more."""
        here = bool(process.boot and process.namespace) and process.host == self._host
        same = (process.boot, process.namespace) == (self._boot, self._namespace)
        return here and same and not Path(f"/proc/{process.pid}").exists()

    def _miss(self, held: _Held, paths: dict[int, Path]) -> None:
        """Tell of files that were removed before all of them was read, and forget those that are gone."""
        if held.files and paths:
            last = max(held.files)
            missing = [number for number in range(last + 1, max(paths)) if number not in paths]
            if missing:
                self._say(held, f"{len(missing)} files were removed before they were read")
                for number in missing:
                    held.files[number] = _Place(whole=True)
        for number in [number for number in held.files if number not in paths]:
            place = held.files[number]
            if not (place.whole or held.process.ended):
                self._say(held, f"file {number} was removed before it was seen that all of it was read")
            if number < max(paths, default=number + 1):
                del held.files[number]

    def _say(self, held: _Held, what: str) -> None:
        process = held.process
        self._tell(f"process {process.pid} on {process.host}: {what}")

    def _read(self, held: _Held, place: _Place, path: Path, room: int) -> tuple[int, bool]:
        """Read what is new in a file; returns how many bytes, and whether there is more."""
        file = reading.File(path)
        with path.open("rb") as stream:
            told = os.fstat(stream.fileno())
            held.written = max(held.written, told.st_mtime)
            if told.st_size == place.offset:
                return 0, False
            if self.full:
                return 0, True
            self._find_place(file, place, stream, told.st_size)
            stream.seek(place.offset)
            # A line is never longer than this.
            most = max(room, reading.LONGEST_LINE)
            data = stream.read(most)
            end = data.rfind(b"\n") + 1
            if not end and len(data) >= reading.LONGEST_LINE:
                end = len(data)
            for raw in data[:end].removesuffix(b"\n").split(b"\n") if end else ():
                place.lines += 1
                if raw and not raw.isspace():
                    try:
                        reading.take(file, place.lines, raw if len(raw) < reading.LONGEST_LINE else None)
                    except reading.Unfit as reason:
                        reading.report(self._trace, file, place.lines, str(reason))
            place.offset += end
            place.check = _check(stream, place.offset)
        self._take(held, file)
        for problem in self._trace.problems:
            self._tell(str(problem))
        self._trace.problems.clear()
        return end, len(data) == most

    def _find_place(self, file: reading.File, place: _Place, stream: BinaryIO, size: int) -> None:
        """Go on elsewhere in a file that is not what it was: what could not be written whole is cut off again."""
        if size >= place.offset and _check(stream, place.offset) == place.check:
            return
        what = "is not what was read before: what was written again meanwhile may be missing"
        reading.report(self._trace, file, place.lines, what)
        if size < place.offset:
            place.offset = size
        else:
            stream.seek(place.offset)
            place.offset += len(stream.readline())

    def _take(self, held: _Held, file: reading.File) -> None:
        """Hold what was read of a file."""
        process = held.process
        if file.header is not None:
            self._describe(held, file.header)
        if file.events and not held.headers:
            told = f"no first line that tells the process: {len(file.events)} events left out"
            reading.report(self._trace, file, 0, told)
            return
        for line, event in file.events:
            self._add(held, file, line, event)
        for _, note in file.notes:
            process.ended = process.ended or "end" in note
            if "lost" in note and "end" not in note:
                self._say(held, f"it has lost {note['lost']} events")

    def _describe(self, held: _Held, header: dict[str, Any]) -> None:
        process = held.process
        process.host, process.boot = header["host"], reading.boot_of(header)
        reading.describe(process, header)
        process.component = process.component or process.program or "unknown"
        del process.anchors[:-_HEADERS]
        held.headers.append(header)
        del held.headers[:-_HEADERS]

    def _add(self, held: _Held, file: reading.File, line: int, event: list[Any]) -> None:
        kind, moment, number, _, name, thread, values = event
        process = held.process
        if number in held.sent or (kind == "P" and number not in process.spans):
            # Of a span that was sent, or a sample of what the process uses.
            return
        if kind == "P":
            process.points.append(Point(process, moment, number, name, thread or 0, values or {}))
        else:
            reading.add(process, file, line, event, set(), self._trace)
        held.events.setdefault(number, []).append(event)

    # What can be sent.

    def ready(self, final: bool = False) -> list[Span]:
        """The spans that can be sent, after all that is there was read.

        Such as could have been sent before: who has called them may have been written a moment later.

        :param final: there will be no other time
        """
        full = self.full
        found: list[Span] = []
        for held in self._held.values():
            able = set(self._able(held, full))
            found += [held.process.spans[number] for number in sorted(able) if final or full or number in held.seen]
            held.seen = able
        if full and not found:
            found = self._given_up()
        return found

    def _able(self, held: _Held, full: bool) -> Iterator[int]:
        quiet = time.time() - held.written if held.written else 0.0
        over = held.process.ended or held.gone or quiet > OVER
        for span in held.unsent():
            *_, outermost = span, *span.around()
            if over or (span.end is not None and (outermost.end is not None or quiet > SILENT or full)):
                yield span.number

    def _given_up(self) -> list[Span]:
        """The older half of what has not ended, where there is no room for more."""
        spans = sorted((span for held in self._held.values() for span in held.unsent()), key=lambda span: span.number)
        self._tell(f"{len(spans)} spans have not ended: half of them are sent as they are")
        return spans[: len(spans) // 2]

    def exported(self, chosen: Sequence[Span]) -> dict[str, Any]:
        """These spans as :func:`fastio.trace.analysis.otlp.export_spans` has them."""
        trace = Trace(processes=[held.process for held in self._held.values() if held.process.spans])
        # Each clock as it is: the messages that tell more of it may be still to come, or in other files.
        clocks.align(trace, ())
        return otlp.export_spans(trace, requests(trace, self._rules), {id(span) for span in chosen})

    def sent(self, spans: Iterable[Span]) -> None:
        """Note that these were sent, and write the position.

        :raises TraceError: if it cannot be written
        """
        by_process = {id(held.process): held for held in self._held.values()}
        for span in spans:
            by_process[id(span.process)].sent[span.number] = None
        for held in self._held.values():
            self._forget(held)
        self.save()

    def _forget(self, held: _Held) -> None:
        """Forget of the spans that were sent those that nobody will ask for."""
        process, needed = held.process, held.around_unsent()
        idle = [number for number in held.sent if number not in needed]
        remembered = 0 if process.ended or held.gone else REMEMBERED
        for number in idle[: max(len(idle) - remembered, 0)]:
            del held.sent[number]
            process.spans.pop(number, None)
        for number in [number for number in held.events if number in held.sent and number not in needed]:
            del held.events[number]
        for number in [number for number in held.events if number not in process.spans]:
            del held.events[number]
        process.points = [each for each in process.points if each.span in process.spans and each.span not in held.sent]

    # The position.

    def _locked(self) -> int:
        path = f"{self._position}.lock"
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise TraceError(f"--position: {path}: {error.strerror}") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise TraceError(
                f"--position {self._position}: another process follows with it ({error.strerror})"
            ) from error
        return fd

    def save(self) -> None:
        """Write the position.

        :raises TraceError: if it cannot be written
        """
        text = json.dumps({_FORMAT_KEY: _FORMAT, "processes": {key: _state(each) for key, each in self._held.items()}})
        made = f"{self._position}.new"
        try:
            with open(made, "w", encoding="ascii", opener=_private) as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(made, self._position)
        except OSError as error:
            raise TraceError(f"--position: {made}: {error.strerror}") from error

    def _load(self) -> None:
        try:
            known = json.loads(self._position.read_bytes())
            if known[_FORMAT_KEY] != _FORMAT:
                raise ValueError(f"version {known[_FORMAT_KEY]!r}, known is {_FORMAT}")
            for key, state in known["processes"].items():
                self._load_process(self._begin(key), state)
        except FileNotFoundError:
            return
        except OSError as error:
            raise TraceError(f"--position: {self._position}: {error.strerror}") from error
        except (ValueError, TypeError, KeyError, AttributeError, AssertionError) as error:
            raise TraceError(
                f"--position {self._position}: this is no position that fastio trace follow has written "
                f"({type(error).__name__}: {error}); without the file all that is there is sent"
            ) from error

    def _load_process(self, held: _Held, state: dict[str, Any]) -> None:
        for header in state["headers"]:
            self._describe(held, header)
        for number, (offset, lines, check, whole) in state["files"].items():
            held.files[int(number)] = _Place(offset, lines, check, bool(whole))
        file = reading.File(self._position)
        for event in state["events"]:
            self._add(held, file, 0, event)
        held.sent = dict.fromkeys(state["sent"])
        held.process.ended = bool(state["ended"])


def _state(held: _Held) -> dict[str, Any]:
    needed = held.around_unsent()
    return {
        "headers": held.headers,
        "files": {number: place.to_list() for number, place in held.files.items()},
        "events": [event for events in held.events.values() for event in events],
        "sent": [number for number in held.sent if number in needed],
        "ended": held.process.ended,
    }


def _check(stream: BinaryIO, offset: int) -> int:
    """What the bytes before ``offset`` come to."""
    begin = max(offset - _KNOWN_BY, 0)
    stream.seek(begin)
    return zlib.crc32(stream.read(offset - begin))


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _raise(error: OSError) -> None:
    raise error
