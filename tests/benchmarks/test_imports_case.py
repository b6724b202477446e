"""The goals of imports, of a result that is made up, and a smoke run where there is a glance."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("psutil", reason="suites need the extra 'bench'")
pytest.importorskip("scipy", reason="tables need the extra 'bench'")

from benchmarks.backends.glance import Glance33
from benchmarks.harness import results, servers
from benchmarks.suites.imports import bench_imports, tables
from tests.benchmarks import samples
from tests.conftest import with_services

pytestmark = with_services

ROOT = Path(__file__).resolve().parent.parent.parent


def row(seconds: float, cpu: float) -> results.VariantResult:
    made = samples.variant([seconds] * 3)
    for run in made.runs:
        run["server_cpu_seconds"] = cpu
    return made


def test_what_is_asked() -> None:
    case = samples.case({"stock": row(10, 20), "fastio": row(5, 8.1)}, name="glance-33-copy-image", unit="s")
    (table,) = tables.judgement(samples.result(case, suite="imports"))
    assert [(line[0], line[4], line[-1]) for line in table.rows] == [
        ("glance-33-copy-image, s", "0.5 x stock", "yes"),
        ("glance-33-copy-image, server CPU s", "0.405 x stock", "no"),
    ]


def test_a_smoke_run(tmp_path: Path) -> None:
    for reason in (Glance33.available(), servers.why_not("http")):
        if reason:
            pytest.skip(reason)
    command = [sys.executable, "-m", "pytest", "-q", "--benchmark-quiet", "--quick", "-p", "no:cacheprovider"]
    command += [bench_imports.__file__, "--result", str(tmp_path / "result.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr
    found = results.read(tmp_path / "result.json")
    assert all(run["verified"] for row in found.cases[0].variants.values() for run in row.measured())
