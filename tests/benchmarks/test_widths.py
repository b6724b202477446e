"""Every table of the benchmarks loses nothing, however narrow the terminal is."""

from pathlib import Path
from types import SimpleNamespace as Some
from typing import Any

import pytest

pytest.importorskip("psutil", reason="tables need the extra 'bench'")
pytest.importorskip("scipy", reason="tables need the extra 'bench'")

from benchmarks.harness import compare, keep, tables
from benchmarks.load import analysis, report, workloads
from benchmarks.load.bottleneck import Bottleneck, Share
from benchmarks.load.usage import Machine, Process, Usage
from benchmarks.tools import fingerprints, platforms, pythons, supported
from benchmarks.tools.upstream import report as upstream
from benchmarks.tools.upstream.compare import Comparison, Difference
from benchmarks.tools.upstream.runner import Outcome, Run
from benchmarks.validate import measurements, projects
from benchmarks.validate import outcome as validation
from benchmarks.validate import tables as validated
from benchmarks.validate.outcome import PythonOutcome
from benchmarks.validate.sandbox import Isolation
from benchmarks.validate.suites import CONFORMANCE, Compared
from tests import widths
from tests.benchmarks import samples
from tests.benchmarks.test_load_analysis import operation, run_of

#: Runs with the widest tables, of all kinds.
SHOWN = ("stores", "glance", "network_10gbit", "disk_swift", "workload_matrix", "never_slower", "eventlet-buffering")


def test_results() -> None:
    for name, run in keep.runs().items():
        for table in [*tables.tables(run), *run.judged] if name in SHOWN else ():
            widths.check(table)


def test_two_results_compared() -> None:
    result = samples.result(samples.case({"native-stock": [1.0] * 7, "native-fastio with a long name": [0.5] * 7}))
    widths.check(compare.table(compare.compare(result, result)))


def test_platforms_and_distributions() -> None:
    for table in [*platforms.tables(platforms.kept()), supported.patches_table(), supported.tested_table()]:
        widths.check(table)


def test_new_code() -> None:
    name = "glance_store._drivers.filesystem:Store.a_function_with_a_long_name"
    new = fingerprints.New(name, "glance_store 9.0.0", "glance_store 5.7.0", ["-a", "+b"], "it reads without a limit")
    widths.check(fingerprints.overview([new]))


@pytest.fixture
def run(tmp_path: Path) -> analysis.Run:
    """One of reads and writes, some of which failed."""
    operations = [
        operation(0, n, n + 1 + n / 100, size=123_456_789, kind=kind, error="status 503: the server is busy" * (n == 9))
        for kind in ("read", "delete_container")
        for n in range(20)
    ]
    return analysis.read(run_of(tmp_path / "the-first-run-of-the-evening", operations))


def test_loads(run: analysis.Run) -> None:
    widths.check(report.table([run, run]))


def test_workloads(run: analysis.Run) -> None:
    moved = (1e8, 2e8, 3e8, 4e8)
    process = Process("generator-1", "swift-proxy-server", [1, 22], 1.25, 0.875, 0.75, [0, 1], 1 << 30, *moved)
    machine = Machine("generator-1", [0.98, 0.12], 1 << 33, 1 << 34, {"eth0": [1e8, 2e8]}, {}, {"vda": [3e8, 4e8, 1]})
    share = Share("the CPU of one core", "swift-proxy-server", 0.98, "98 % of core 0 were used in 20 of 21 seconds")
    figures = {**report.figures(run), **dict.fromkeys(workloads.COLUMNS, 12_345.678)}
    work = workloads.Measured("main stage", "read-1MiB", "read", run, figures, Usage(20, [machine], [process]),
                              Bottleneck(share, (share,)), ["5 x status 503"])  # fmt: skip
    stages, doubts = {"1 init": "failed"}, ["others used 30 % of the cores"]
    found = workloads.Found("objects of 1 MiB", "", doubts, stages, [work, work], [])
    widths.check(workloads.table(found))
    widths.check(workloads.processes(work))


def test_validations() -> None:
    """Of figures, and of tests that differ."""
    rows = {f"native-{each}": [1.0, 1.1, 0.9] for each in ("stock", "candidate", "fastio")}
    result = samples.result(samples.case(rows, title="add of 256 MiB to the filesystem"), suite="validate glance_store")
    worse = Difference("tests.unit.test_store.TestStore.test_a_long_name", Outcome("pass"), Outcome(
        "fail", detail="Traceback:\nsubprocess.TimeoutExpired: Command 'cat' timed out after 5 seconds"
    ))  # fmt: skip
    stock, patched = Run(False, {worse.test: worse.stock}), Run(True, {worse.test: worse.patched})
    suite = CONFORMANCE["conformance-stores-native"]
    judged = [
        Compared(Comparison(suite, "candidate", stock, patched, [worse])),
        Compared(Comparison(suite, "fastio", unavailable="there is no uWSGI")),
    ]
    variants: Any = [
        Some(name=name, version="5.7.0", changed=["a/file.py"]) for name in ("stock", "candidate", "fastio")
    ]
    python = PythonOutcome(pythons.find(""), variants, judged, result, measurements.rows(result))
    project = projects.find("glance_store")
    made = validated.found(validation.Outcome(project, None, [], {}, "", Isolation(), [python]))
    assert [table.title for table in made] == [
        "What was compared", "Suites", "Tests whose outcome differs", "Benchmarks"
    ]  # fmt: skip
    for table in made:
        widths.check(table)


def test_upstreams_suites() -> None:
    test = "glance_store.tests.unit.test_filesystem_store.TestStore.test_a_function_with_a_long_name"
    passed = Outcome("pass")
    failed = Outcome("fail", detail="Traceback:\nsubprocess.TimeoutExpired: Command 'cat' timed out after 5 seconds")
    worse = Difference(test, passed, failed, [passed], [failed])
    suite = CONFORMANCE["conformance-stores-native"]
    stock, patched = Run(False, {test: passed}), Run(True, {test: failed})
    missing = Comparison(suite, "patched", unavailable="there is no uWSGI here, and nobody can install it")
    comparisons = [Comparison(suite, "patched", stock, patched, [worse]), missing]
    for table in upstream.tables(comparisons):
        assert table.rows
        widths.check(table)
