"""Results made up for the tests of what reads results."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.harness.results import CaseResult, Result, VariantResult

SIZE = 200 << 20
#: Seconds of seven runs, with a spread as a shared machine has it.
SPREAD = [0.50, 0.51, 0.49, 0.52, 0.50, 0.55, 0.48]
FAILURE = {"reason": "exit status 1", "status": 1, "stderr": "Traceback\nValueError: <bad>\n"}


def times(factor: float) -> list[float]:
    """The same, so many times as long."""
    return [seconds * factor for seconds in SPREAD]


MACHINE: dict[str, Any] = {
    "system": "Linux",
    "kernel": "6.1",
    "distribution": "Debian",
    "processor": "EPYC",
    "fsrm": True,
    "usable_threads": 2,
    "memory": 24 << 30,
    "python": "3.11.7",
}


def variant(seconds: Sequence[float], *, verified: bool = True, **fields: Any) -> VariantResult:
    """A variant with one measured run per figure, after a warm-up that is far slower."""
    runs = [
        {"round": number, "warmup": number == 0, "started": 0.0, "verified": verified, "seconds": taken,
         "cpu_seconds": taken / 2, "bytes": SIZE, "reads": 6400}
        for number, taken in enumerate([1000.0, *seconds])
    ]  # fmt: skip
    defaults = {"name": "x", "command": ["x"], "parameters": {"size": SIZE}, "rounds": len(seconds), "usual_rounds": 7}
    return VariantResult(**{**defaults, **fields}, runs=runs if seconds else [])


def case(variants: Mapping[str, VariantResult | Sequence[float]], **fields: Any) -> CaseResult:
    """A case of throughput with these rows; a row may be given as the seconds of its runs."""
    rows = {title: row if isinstance(row, VariantResult) else variant(row) for title, row in variants.items()}
    defaults = {
        "name": "cat", "title": "", "workload": "sheepdog", "parameters": {"size": SIZE}, "baseline": next(iter(rows)),
        "unit": "MB/s", "value": "seconds", "columns": [], "seed": 0, "complete": True,
    }  # fmt: skip
    return CaseResult(**{**defaults, **fields}, variants=rows)


def result(*cases: CaseResult, **fields: Any) -> Result:
    defaults = {"suite": "sample", "machine": dict(MACHINE), "packages": {"eventlet": "0.41.3"}, "command": ["x"]}
    return Result(**{**defaults, **fields}, cases=list(cases))
