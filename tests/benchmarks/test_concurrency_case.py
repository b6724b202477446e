"""The tables and plots of many requests at a time, of results that are made up; a smoke run where there is a glance."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy", reason="results need the extra 'bench'")
pytest.importorskip("psutil", reason="suites need the extra 'bench'")

from benchmarks.backends.glance import Glance32
from benchmarks.harness import results
from benchmarks.harness.results import CaseResult, Result
from benchmarks.suites.concurrency import bench_concurrency as concurrency
from benchmarks.suites.concurrency import tables
from tests.benchmarks import samples
from tests.conftest import with_services

pytestmark = with_services

ROOT = Path(__file__).resolve().parent.parent.parent


def row(rate: float, success: float = 1.0, trace: dict[str, Any] | None = None) -> results.VariantResult:
    """A row with so many requests a second."""
    made = samples.variant([1.0, 1.0])
    for run in made.runs[1:]:
        run |= {"seconds": 1.0, "bytes": int(rate * concurrency.SIZE), "operations_per_second": rate}
        run |= {"success_ratio": success, "whole_p50_ms": 2000.0, "whole_p99_ms": 9000.0}
        run |= {"servers_cpu": 0.9, "generator_cpu": 0.5, "bottleneck": "thread of glance-api: one thread used 0.97"}
    made.details = {"shares": {"resource": "thread", "shares": []}, **({"trace": trace} if trace else {})}
    return made


def case(users: int, stock: float, fastio: float, success: float = 1.0) -> CaseResult:
    trace = {"lost": 3, "states": {"body": {"count": 2, "p50_ms": 12.0, "p99_ms": 70.0}}}
    rows = {"stock": row(stock), "fastio": row(fastio, success), "stock, traced": row(stock, trace=trace)}
    return samples.case(rows, name=f"glance-32-{users}", workload="concurrency", unit="MiB/s")


def made(*cases: CaseResult) -> Result:
    return samples.result(*cases, suite="concurrency")


RISES = (case(20, 30, 40), case(100, 40, 60), case(400, 41, 61), case(2000, 30, 50, 0.9))


def test_the_overview() -> None:
    first = tables.overview(made(*RISES)).rows[0]
    assert first[:4] == ["glance-32", "20", "30", "40"] and first[4].startswith("1.33")
    assert first[5:] == ["100.00%", "100.00%", "2", "2", "9", "9", "thread", "thread"]


def test_states_are_of_the_traced_rows() -> None:
    shown = tables.states(made(RISES[0]))
    assert shown.rows == [["glance-32", "20", "body", "12", tables.EMPTY, "70", tables.EMPTY]]
    assert shown.notes == ["glance-32, 20, stock: 3 spans of the trace were lost"]


def test_it_is_saturated_where_more_at_a_time_bring_no_more() -> None:
    rows = tables.saturation(made(*RISES)).rows
    assert [line[:4] for line in rows] == [["glance-32", "stock", "100", "41"], ["glance-32", "fastio", "100", "61"]]


def test_a_row_that_has_failed_is_left_out() -> None:
    failed = case(100, 40, 50)
    failed.variants["fastio"].runs = []
    assert tables.overview(made(failed)).rows[0][3:5] == [tables.EMPTY, tables.EMPTY]
    assert not tables.goals(made(failed)).rows


def test_a_smoke_run(tmp_path: Path) -> None:
    # Not imported: Locust patches the process that imports it.
    for package, extra in (("locust", "load"), ("scipy", "trace")):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs the extra {extra!r}")
    reason = Glance32.available()
    if reason:
        pytest.skip(f"glance-32: {reason}")
    command = [sys.executable, "-m", "pytest", "-q", "--benchmark-quiet", "--quick"]
    command += ["benchmarks/suites/concurrency/bench_concurrency.py", "-k", "glance-32", "-p", "no:cacheprovider"]
    command += ["--result", str(tmp_path / "result.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0 and "4 passed" in done.stdout, done.stdout + done.stderr
    found = results.read(tmp_path / "result.json")
    assert [line[2] for line in tables.states(found).rows][:2] == ["middleware", "controller"]
