"""Every operation of a worker, kept: a gzipped table with one line for each, written as they end.

The file has the heading of the table and the operations in the order in which they ended. A worker sends the ended
operations every second, each time a whole member of the gzip file. The file keeps all of that even if the worker is
killed.
"""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, get_type_hints

from benchmarks.load import Wrong

#: The file of a run that has its plan and what the workers say, beside those of the records.
SUMMARY = "run.json"
RUN_FORMAT = "fastio-load-run"
RUN_VERSION = 2

#: Characters that are kept of an error.
ERROR_LENGTH = 200
#: The time of a phase that was not reached.
NOT_REACHED = -1.0


class Record(NamedTuple):
    """One operation. Times are in seconds; :data:`NOT_REACHED` for a phase that was not reached."""

    operation: str
    #: of the object
    number: int
    #: of the worker
    user: int
    #: since the epoch, by the worker's clock
    start: float
    #: from the start until the request has been sent, connecting included
    sent: float
    #: from the start until the head of the answer has come
    first_byte: float
    #: from the start until the end of the answer, or until it has failed
    end: float
    #: of the object that have come, or have been sent
    bytes: int
    #: of HTTP; 0 if there was no answer
    status: int
    #: empty if all went well
    error: str
    #: from when it was due until the start; :data:`NOT_REACHED` in a closed loop
    late: float = NOT_REACHED


_KINDS = tuple(get_type_hints(Record).values())


def file_name(worker: int) -> str:
    """The file of records of a worker."""
    return f"worker-{worker}.csv.gz"


class Writer:
    """Makes a file of records, piece by piece."""

    def __init__(self) -> None:
        self._text = io.StringIO()
        self._table = csv.writer(self._text, lineterminator="\n")
        self._table.writerow(Record._fields)

    def add(self, record: Record) -> None:
        # csv of Python 3.10 neither writes nor reads a NUL.
        error = " ".join(record.error.replace("\0", " ").split())[:ERROR_LENGTH]
        values = record._replace(error=error)
        self._table.writerow(f"{each:.6f}" if isinstance(each, float) else each for each in values)

    def piece(self) -> bytes:
        """Return the part added since the last piece."""
        text = self._text.getvalue()
        self._text.seek(0)
        self._text.truncate()
        return gzip.compress(text.encode("utf-8"), 1)


def read(path: Path) -> Iterator[Record]:
    """The records of a file.

    :raises Wrong: if it is no such file
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            rows = csv.reader(file)
            if tuple(next(rows, ())) != Record._fields:
                raise Wrong(f"{path}: other columns than {', '.join(Record._fields)}")
            for row in rows:
                try:
                    yield Record(*(kind(text) for kind, text in zip(_KINDS, row, strict=True)))
                except ValueError as error:
                    raise Wrong(f"{path}: line {rows.line_num}: {error}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise Wrong(f"{path}: {error}") from error
