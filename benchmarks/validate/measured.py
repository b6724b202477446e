"""Candidates beside stock: the benchmarks of a validation. What ``benchmarks.report`` shows of such a result."""

from __future__ import annotations

from benchmarks.harness.results import Result
from benchmarks.harness.tables import Table

from . import measurements, tables


def judgement(result: Result) -> list[Table]:
    rows = [(result.case(row.case).title, row) for row in measurements.rows(result)]
    head, lines = tables.compared(rows)
    return [Table("Against stock", list(head), [list(line) for line in lines])]
