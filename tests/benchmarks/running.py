"""Cases and single runs of the suites, for tests: with little data, in processes of their own like the engine's."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.harness import engine, results, worker
from benchmarks.harness.engine import Case, Options, Progress
from tests.backends.required import usable

#: Seconds that a run may take; none takes even a few.
PATIENCE = 120

#: Runs of a variant in one process.
MANY = """
import sys
from benchmarks.harness import worker
for parameters in sys.argv[3:]:
    if "fastio.counters" in sys.modules:
        sys.modules["fastio.counters"].reset()
    worker.main([*sys.argv[1:3], parameters])
"""


def measured(case: Case, options: Options | None = None) -> results.CaseResult:
    """The case, measured: no run has failed, and all that were made had the right data."""
    result = results.Result("test", {}, {})
    engine.run([case], result, options, progress=Progress(io.StringIO()))
    (found,) = result.cases
    for title, row in found.variants.items():
        assert row.failure is None, f"{title}: {row.failure['reason']}\n{row.failure['stderr']}"
        assert row.skipped or row.verified(), title
    return found


def started(
    workload: str, variant: str, parameters: Mapping[str, Any], told: Mapping[str, Any] | None = None, **environ: str
) -> subprocess.CompletedProcess[str]:
    """One run of a variant, which may fail; ``told`` is what the engine would tell it of its surroundings."""
    command = ["-m", "benchmarks.harness.worker", workload, variant, json.dumps(parameters)]
    return _started(command, {worker.SURROUNDINGS_VARIABLE: json.dumps(told or {}), **environ})


def _started(command: list[str], environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("FASTIO_", "TEST_"))}
    inherited[worker.CACHE_VARIABLE] = os.environ.get(worker.CACHE_VARIABLE, "")
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


def work_many(workload: str, variant: str, choices: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The results of runs of a variant, one after the other in the same process."""
    command = ["-c", MANY, workload, variant, *map(json.dumps, choices)]
    done = _started(command, {worker.SURROUNDINGS_VARIABLE: "{}"})
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def needs(*backends: str) -> None:
    """Skip the test where one of these cannot run."""
    for name in backends:
        usable(name)
