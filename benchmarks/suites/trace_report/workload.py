"""``fastio trace report`` of a trace of several hosts: reading, clocks, states, errors, and the tables.

Parameters:

``requests``
    how many the trace has, each of some 20 events of four processes on three hosts

Results: ``memory_mib``, the largest resident memory of the process with all that it imports, and ``events``. A run is
right if the report has all requests, each of them ok, and the clocks contradict nothing.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness.worker import MIB, measure
from benchmarks.tools import synthetic


def report(parameters: Mapping[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        world = synthetic.World(list(synthetic.HOSTS))
        requests = parameters["requests"]
        world.run(requests)
        world.write(Path(directory), files=3)
        del world
        with measure() as measured:
            from fastio.trace.analysis import views
            from fastio.trace.analysis.analysis import analyse

            analysis = analyse([directory])
            text = "\n".join(table.text(80) for table in views.tables(analysis))
    ok = sum(each.outcome == "ok" for each in analysis.kinds()["download"])
    verified = analysis.sound and ok == requests and "download" in text
    memory = _resident() / MIB
    return measured.result(verified=verified, memory_mib=memory, events=analysis.trace.counts["events"])


def _resident() -> int:
    """The most that this process ever had, in bytes."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))


VARIANTS = {"report": report}
