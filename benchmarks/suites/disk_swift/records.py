"""The requests of disk against Swift, from the records of the runs: each of them, and what they say together."""

from typing import Any

import numpy

from benchmarks.harness import engine, statistics
from benchmarks.harness.results import CaseResult, VariantResult
from benchmarks.load import analysis

#: Phases in which Swift may lose time, as the study calls them, and what they are together.
PHASES = {"response": "response", "transfer": "transfer", "whole": "whole request"}


def figures(variant: VariantResult) -> dict[str, numpy.ndarray]:
    """Of each request that counts, of all measured runs of a row: milliseconds by phase.

    Empty if the records are not there (any more).
    """
    found: dict[str, list[numpy.ndarray]] = {name: [] for name in PHASES}
    for run in variant.measured():
        if "records" not in run or not (engine.ROOT / run["records"]).is_dir():
            continue
        read = analysis.read(engine.ROOT / run["records"])
        counted = analysis.begun_within(read.operations, analysis.window(read.operations))
        for phase in PHASES:
            found[phase].append(counted.milliseconds(phase))
    return {name: numpy.concatenate(parts) for name, parts in found.items() if parts}


def summary(case: CaseResult) -> dict[str, Any]:
    """Return a result's record of a scenario's requests, by row: how many they are, and the statistics of each phase.

    A row whose records are not there, or of which every request has failed, is left out.
    """
    found = {title: figures(variant) for title, variant in case.variants.items()}
    return {
        title: {"requests": len(each["transfer"]), **{phase: _statistics(each[phase]) for phase in PHASES}}
        for title, each in found.items() if each and len(each["transfer"])
    }  # fmt: skip


def _statistics(values: numpy.ndarray) -> dict[str, Any]:
    kept = statistics.without_outliers(values)
    return {
        **_moments(values),
        **{f"{name} without outliers": figure for name, figure in _moments(kept).items()},
        "outliers": len(values) - len(kept),
        "median": [statistics.median(values), *statistics.median_interval(values)],
        "median absolute deviation": statistics.deviation(values),
        "p99": float(numpy.percentile(values, 99)),
    }


def _moments(values: numpy.ndarray) -> dict[str, float]:
    found = statistics.moments(values)
    return {"mean": found.mean, "standard deviation": found.deviation}
