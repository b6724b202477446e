"""chunk x pipe x yield: where fastio's default settings come from.

``python -m benchmarks.suites.sweep.workload results/sweep.json [--json FILE]`` prints the grid and the settings that it
recommends.

One process of a cell of the grid reads a payload alone, writes one alone, and reads ``transfers`` at the same time
beside a heartbeat greenlet, all through ``processutils.execute()`` under eventlet.

Parameters:

``chunk_size``, ``pipe_size``, ``yield_bytes``
    fastio's settings: the cell
``size``
    bytes read and written alone
``transfers``, ``transfer_size``
    of the third part

Results: the usual ones of the reading alone; ``input_mb_s`` and ``together_mb_s`` of the others; ``p50_ms``,
``p99_ms``, ``worst_ms`` and ``arrival_p99_ms`` of the heartbeat.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.harness.ways import WAYS, check_fast, enter
from benchmarks.suites.communicate import workload as communicate
from benchmarks.suites.fairness import workload as fairness
from benchmarks.suites.input import writing

if TYPE_CHECKING:
    from benchmarks.harness.results import Result

SETTINGS = ("chunk_size", "pipe_size", "yield_bytes")
RESULTS = ("input_mb_s", "together_mb_s", "p99_ms")


def run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    way = WAYS["eventlet-fastio"]
    enter(way, {"settings": {name: parameters[name] for name in SETTINGS}})
    oslo = {"size": parameters["size"], "through": "oslo"}
    alone = communicate.measure_output(oslo)
    check_fast(way, alone["bytes"])
    written = writing.measure_input(writing.through(oslo), *writing.source(oslo))
    together = fairness.measure_fairness({"transfers": parameters["transfers"], "size": parameters["transfer_size"]})
    lateness = {name: together[name] for name in ("p50_ms", "p99_ms", "worst_ms", "arrival_p99_ms")}
    return {
        **alone,
        "verified": alone["verified"] and written["verified"] and together["verified"],
        "input_mb_s": written["bytes"] / written["seconds"] / 1e6,
        "together_mb_s": together["mb_s"],
        **lateness,
    }


VARIANTS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {"eventlet-fastio": run}


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


def main(arguments: Sequence[str] | None = None) -> int:
    from benchmarks.harness import results
    from fastio.config import format_size

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.suites.sweep.workload",
        description="Print the grid of a sweep and what it recommends.",
    )
    parser.add_argument("result", type=Path, help="JSON result of the suite sweep")
    parser.add_argument("--within", type=float, default=WITHIN, help=f"part of the best throughput (default {WITHIN})")
    parser.add_argument("--p99", type=float, default=P99_MS, help=f"milliseconds of lateness (default {P99_MS:g})")
    parser.add_argument("--json", type=Path, help="write the cells and the recommendation to this file too")
    chosen = parser.parse_args(arguments)
    try:
        cells = cells_of(results.read(chosen.result))
        best = recommend(cells, chosen.within, chosen.p99)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{'chunk':>8} {'pipe':>8} {'yield':>8} {'output':>8} {'input':>8} {'together':>8} {'mean':>8} {'p99 ms':>8}")
    for cell in cells:
        sizes = " ".join(f"{format_size(getattr(cell, name)):>8}" for name in SETTINGS)
        rates = (cell.output_mb_s, cell.input_mb_s, cell.together_mb_s, cell.mb_s)
        print(sizes, *(f"{rate:8.0f}" for rate in rates), f"{cell.p99_ms:8.2f}", "<-" if cell == best else "")
    print(
        f"The smallest settings within {chosen.within:.0%} of the best mean throughput (MB/s) that keep the 99th "
        f"percentile of the heartbeat's lateness at {chosen.p99:g} ms:",
        ", ".join(f"{name} {format_size(getattr(best, name))}" for name in SETTINGS),
    )
    if chosen.json:
        recommended = {name: getattr(best, name) for name in SETTINGS}
        data = {"recommended": recommended, "cells": [{**cell._asdict(), "mb_s": cell.mb_s} for cell in cells]}
        chosen.json.write_text(json.dumps(data, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
