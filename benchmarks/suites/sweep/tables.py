"""The grid of the sweep, and the settings that it recommends."""

import statistics
from collections.abc import Iterable
from typing import NamedTuple

from benchmarks.harness.results import Result
from benchmarks.harness.tables import Table, number
from benchmarks.suites.sweep.workload import RESULTS, SETTINGS
from fastio.config import format_size

#: How far below the best throughput a recommended setting may be.
WITHIN = 0.03
#: The 99th percentile of the heartbeat's lateness that it must keep, in milliseconds.
P99_MS = 10.0


class Cell(NamedTuple):
    """The medians of one cell of the grid."""

    #: fastio's settings, in bytes
    chunk_size: int
    pipe_size: int
    yield_bytes: int
    #: MB/s of the three parts
    output_mb_s: float
    input_mb_s: float
    together_mb_s: float
    #: 99th percentile of the heartbeat's lateness, in milliseconds
    p99_ms: float

    @property
    def mb_s(self) -> float:
        """One throughput for the cell: the geometric mean, in which 3 % of any part weigh the same."""
        return statistics.geometric_mean((self.output_mb_s, self.input_mb_s, self.together_mb_s))


def cells_of(result: Result) -> list[Cell]:
    """The cells that a result of the sweep has figures of."""
    cells = []
    for row in (row for case in result.cases for row in case.variants.values()):
        if not row.measured() or not row.verified():
            continue
        output = statistics.median(run["bytes"] / run["seconds"] / 1e6 for run in row.measured())
        others = {name: statistics.median(run[name] for run in row.measured()) for name in RESULTS}
        cells.append(Cell(**{name: row.parameters[name] for name in SETTINGS}, output_mb_s=output, **others))
    return cells


def recommend(cells: Iterable[Cell], within: float = WITHIN, p99_ms: float = P99_MS) -> Cell:
    """The smallest settings whose throughput is at most ``within`` below the best, of those that are fair enough.

    The smallest pipe comes first, because the kernel limits a user's memory for pipes; then the smallest chunk, then
    the smallest turn.

    :raises ValueError: if no cell keeps the heartbeat's lateness below ``p99_ms``
    """
    fair = [cell for cell in cells if cell.p99_ms <= p99_ms]
    if not fair:
        raise ValueError(f"no settings keep the 99th percentile of the heartbeat's lateness at {p99_ms} ms or less")
    best = max(cell.mb_s for cell in fair)
    enough = [cell for cell in fair if cell.mb_s >= (1 - within) * best]
    return min(enough, key=lambda cell: (cell.pipe_size, cell.chunk_size, cell.yield_bytes))


def judgement(result: Result) -> list[Table]:
    return [table(result)]


def table(result: Result) -> Table:
    """All settings by their throughput, and those to recommend."""
    cells = cells_of(result)
    try:
        best = recommend(cells)
        note = (
            f"the smallest settings within {WITHIN:.0%} of the best mean throughput that keep p99 at "
            f"{P99_MS:g} ms: {_sizes(best)}"
        )
    except ValueError as error:
        note = str(error)
    head = ["chunk / pipe / yield", "output MB/s", "input MB/s", "together MB/s", "mean MB/s", "p99 ms"]
    rows = [
        [_sizes(cell), *map(number, (cell.output_mb_s, cell.input_mb_s, cell.together_mb_s, cell.mb_s, cell.p99_ms))]
        for cell in sorted(cells, key=lambda cell: -cell.mb_s)
    ]
    return Table("All settings, the fastest first", head, rows, [note])


def _sizes(cell: Cell) -> str:
    return " / ".join(format_size(getattr(cell, name)) for name in SETTINGS)
