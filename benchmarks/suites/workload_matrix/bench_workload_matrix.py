"""The workload matrix: object size x workers x reads to writes, and what limits each of the workloads.

After the study that found a Swift limited by its processors where its bandwidth told nobody why. A case is one object
size on a real Swift (and some on an S3 server), a row one workload. The last cases are the study's finding: the same
servers on all cores, on one, and with a quota of processor time, where the processors are the limit and where they are
not.
"""

from __future__ import annotations

from benchmarks.suites.workload_matrix import cases

CASES = cases.CASES


def test_workload_matrix(recorded):
    recorded()
