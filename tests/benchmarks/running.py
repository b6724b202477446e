"""Cases and single runs of the suites, for tests: with little data, in separate processes like the engine's."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from benchmarks.harness import engine, results, worker
from benchmarks.harness.engine import Case, Options
from tests.backends.required import usable

#: Seconds that a run may take; none takes even a few.
PATIENCE = 120


def measured(case: Case, options: Options | None = None) -> results.CaseResult:
    """The case, measured: no run has failed, and all that were made had the right data."""
    result = results.Result("test", {}, {})
    engine.run([case], result, options, progress=io.StringIO())
    (found,) = result.cases
    for title, row in found.variants.items():
        assert row.failure is None, f"{title}: {row.failure['reason']}\n{row.failure['stderr']}"
        assert row.skipped or row.verified(), title
    return found


def started(
    workload: str, variant: str, parameters: Mapping[str, Any], told: Mapping[str, Any] | None = None, **environ: str
) -> subprocess.CompletedProcess[str]:
    """One run of a variant, which may fail; ``told`` is what the engine would tell it of its surroundings."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("FASTIO_", "TEST_"))}
    inherited[worker.CACHE_VARIABLE] = os.environ.get(worker.CACHE_VARIABLE, "")
    inherited[worker.SURROUNDINGS_VARIABLE] = json.dumps(told or {})
    command = ["-m", "benchmarks.harness.worker", workload, variant, json.dumps(parameters)]
    return subprocess.run(
        [sys.executable, "-W", "ignore", *command], env={**inherited, **environ}, cwd=engine.ROOT,
        capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip


def work(
    workload: str, variant: str, parameters: Mapping[str, Any], told: Mapping[str, Any] | None = None, **environ: str
) -> dict[str, Any]:
    """The result of one run of a variant."""
    done = started(workload, variant, parameters, told, **environ)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def needs(*backends: str) -> None:
    """Skip the test where one of these cannot run."""
    for name in backends:
        usable(name)
