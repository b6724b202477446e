"""Every operation of a worker, kept: a gzipped table with one line for each, written as they end.

A file begins with a line of JSON, which names its format, then has the heading of the table and the operations in the
order in which they ended. What is written can be read at once up to the last second or so, even if the worker is
killed; a file that ends in the middle of a line is read up to there, and said to be truncated.
"""

import csv
import gzip
import json
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from benchmarks.load import Wrong, files

FORMAT = "fastio-load-records"
VERSION = 1
#: The file of a run that has its plan and what the workers say, beside those of the records.
SUMMARY = "run.json"
RUN_FORMAT = "fastio-load-run"
RUN_VERSION = 1

#: Seconds after which what has been recorded is written out.
FLUSH_SECONDS = 1.0
#: Characters that are kept of an error.
ERROR_LENGTH = 200
#: The time of a phase that was not reached.
NOT_REACHED = -1.0


class RecordError(Wrong):
    """A file that does not hold records, or whose version this program does not know."""


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


def file_name(worker: int) -> str:
    """The file of records of a worker."""
    return f"worker-{worker}.csv.gz"


class Writer:
    """Writes records to a file.

    :param path: of the new file
    :param about: what the first line says beside the format
    """

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        self._file: TextIO = gzip.open(path, "wt", 1, "utf-8", newline="")  # noqa: SIM115 (closed by close())
        self._table = csv.writer(self._file, lineterminator="\n")
        self._flushed = time.monotonic()
        self.count = 0
        self._file.write(json.dumps({"format": FORMAT, "version": VERSION, **about}) + "\n")
        self._table.writerow(Record._fields)

    def add(self, record: Record) -> None:
        self._table.writerow(
            (
                record.operation, record.number, record.user, f"{record.start:.6f}", f"{record.sent:.6f}",
                f"{record.first_byte:.6f}", f"{record.end:.6f}", record.bytes, record.status,
                _one_line(record.error), f"{record.late:.6f}",
            )
        )  # fmt: skip
        self.count += 1
        if time.monotonic() - self._flushed > FLUSH_SECONDS:
            self._file.flush()
            self._flushed = time.monotonic()

    def close(self) -> None:
        self._file.close()


def _one_line(error: str) -> str:
    # csv of Python 3.10 neither writes nor reads a NUL.
    return " ".join(error.replace("\0", " ").split())[:ERROR_LENGTH]


class Reader:
    """Reads a file of records: first :attr:`about`, then by iteration the records, one at a time.

    :raises RecordError: if it is not such a file
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        #: the file ends before its end was written, known when all has been read
        self.truncated = False
        self._lines = self._read_lines()
        try:
            self.about = json.loads(next(self._lines, ""))
            files.check(self.about, "records of a load", FORMAT, VERSION, RecordError)
        except ValueError as error:
            raise RecordError(f"{path}: no records of a load: {error}") from error

    def _read_lines(self) -> Iterator[str]:
        with gzip.open(self.path, "rb") as file:
            while True:
                try:
                    line = file.readline()
                except (EOFError, zlib.error, gzip.BadGzipFile):
                    self.truncated = True
                    return
                if not line:
                    return
                yield line.decode("utf-8", "replace")

    def __iter__(self) -> Iterator[Record]:
        rows = csv.reader(self._lines)
        if tuple(next(rows, Record._fields)) != Record._fields:
            raise RecordError(f"{self.path}: other columns than {', '.join(Record._fields)}")
        for row in rows:
            try:
                yield Record(
                    row[0], int(row[1]), int(row[2]), float(row[3]), float(row[4]), float(row[5]), float(row[6]),
                    int(row[7]), int(row[8]), row[9], float(row[10]),
                )  # fmt: skip
            except (ValueError, IndexError) as error:
                raise RecordError(f"{self.path}: line {rows.line_num + 1}: {error}") from error
