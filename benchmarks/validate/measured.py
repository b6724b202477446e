"""Candidates beside stock: the benchmarks of a validation. What ``benchmarks.report`` shows of such a result."""

from benchmarks.harness.results import Result
from fastio.tables import Table

from . import measurements, tables


def judgement(result: Result) -> list[Table]:
    return [tables.against_stock([(result.case(row.case).title, row) for row in measurements.rows(result)])]
