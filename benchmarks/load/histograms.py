"""The times of a run as HdrHistograms, one for each second, in the log that its tools read (hdrhistogram.org).

They hold what all workers recorded. Histograms add up: those of several runs, or of a part of one, are merged without
a loss, which percentiles are not.
"""

from pathlib import Path
from typing import TextIO

import numpy
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogWriter

from benchmarks.load.analysis import SEGMENT, Run

#: Microseconds that a histogram can hold at the most; longer times count as this long.
LONGEST = 3600 * 10**6
#: Decimal digits that are kept of a time.
DIGITS = 3


def of_second(run: Run) -> dict[int, HdrHistogram]:
    """The times of the operations that went well, by the second in which they were due, or began in a closed loop.

    In an open loop a time is counted from when the operation was due. Times are in microseconds.
    """
    operations = run.operations.only(~run.operations.failed)
    begin = operations.begin
    taken = numpy.clip(numpy.rint((operations.end - begin) * 1e6), 1, LONGEST).astype(int)
    made: dict[int, HdrHistogram] = {}
    for second, time in zip((begin // SEGMENT).astype(int).tolist(), taken.tolist(), strict=True):
        if second not in made:
            made[second] = HdrHistogram(1, LONGEST, DIGITS)
        made[second].record_value(time)
    return dict(sorted(made.items()))


def write(run: Run, path: Path) -> None:
    """Write the histograms of a run as a log."""
    with open(path, "w", encoding="utf-8") as file:
        _write(run, file)


def _write(run: Run, file: TextIO) -> None:
    log = HistogramLogWriter(file)
    log.output_log_format_version()
    log.output_comment(f"[Logged by fastio, times in microseconds, of {run.directory.name}]")
    # Not output_start_time(): its datetime has no iso_format().
    file.write(f"#[StartTime: {run.started:f} (seconds since epoch)]\n")
    log.output_legend()
    for second, histogram in of_second(run).items():
        log.output_interval_histogram(
            histogram, run.started + second * SEGMENT, run.started + (second + 1) * SEGMENT, 1.0
        )
