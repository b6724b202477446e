"""The workload matrix: object size x workers x reads to writes, and what limits each of the workloads.

After the study that found a Swift limited by its processors where its bandwidth told nobody why. A case is one object
size on a real Swift (and some on an S3 server), a row one workload. The last cases are the study's finding: the same
servers on all cores, on one, and with a quota of processor time, where the processors are the limit and where they are
not.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.harness.results import Result
from benchmarks.harness.tables import Table
from benchmarks.suites.workload_matrix import cases, tables

CASES = cases.CASES

PLOTS = {"workloads": "Bandwidth and CPU by workload number, and the same servers with fewer processors"}


def judgement(result: Result) -> list[Table]:
    return tables.tables(result)


def plot(result: Result, directory: Path, name: str) -> list[Path]:
    from benchmarks.suites.workload_matrix import plots

    return plots.plot(result, directory, name)


def test_workload_matrix(recorded):
    recorded()
