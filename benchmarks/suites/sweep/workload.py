"""chunk x pipe x yield: where fastio's default settings come from.

One process of a cell of the grid reads a payload alone, writes one alone, and reads ``transfers`` at the same time
beside a heartbeat greenlet, all through ``processutils.execute()`` under eventlet.

Parameters:

``chunk_size``, ``pipe_size``, ``yield_bytes``
    fastio's settings: the cell
``size``
    bytes read and written alone
``transfers``, ``transfer_size``
    of the third part

Results: the usual ones of the reading alone; ``input_mb_s`` and ``together_mb_s`` of the others; ``p50_ms``,
``p99_ms``, ``worst_ms`` and ``arrival_p99_ms`` of the heartbeat.
"""

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.harness.modes import MODES, check_fast, enter
from benchmarks.suites.communicate import workload as communicate
from benchmarks.suites.fairness import workload as fairness
from benchmarks.suites.input import writing

SETTINGS = ("chunk_size", "pipe_size", "yield_bytes")
RESULTS = ("input_mb_s", "together_mb_s", "p99_ms")


def run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    mode = MODES["eventlet-fastio"]
    enter(mode, {"settings": {name: parameters[name] for name in SETTINGS}})
    oslo = {"size": parameters["size"], "through": "oslo"}
    alone = communicate.measure_output(oslo)
    check_fast(mode, alone["bytes"])
    written = writing.measure_input(writing.through(oslo), *writing.source(oslo))
    together = fairness.measure_fairness({"transfers": parameters["transfers"], "size": parameters["transfer_size"]})
    lateness = {name: together[name] for name in ("p50_ms", "p99_ms", "worst_ms", "arrival_p99_ms")}
    return {
        **alone,
        "verified": alone["verified"] and written["verified"] and together["verified"],
        "input_mb_s": written["bytes"] / written["seconds"] / 1e6,
        "together_mb_s": together["mb_s"],
        **lateness,
    }


VARIANTS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {"eventlet-fastio": run}
