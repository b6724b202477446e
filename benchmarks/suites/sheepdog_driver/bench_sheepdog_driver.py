"""The sheepdog driver for today's glance_store, compared with ``dog`` without Python.

``pytest benchmarks/suites/sheepdog_driver/bench_sheepdog_driver.py`` measures all of it in about two minutes.
"""

from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.modes import MIB
from benchmarks.suites.sheepdog_driver.workload import VARIANTS, why_not

SIZE = 256 * MIB

CASES = [
    Case(
        name=f"{task}-{pauses}",
        title=f"{task}() of an image, storage {storage}",
        workload="sheepdog_driver",
        variants=[Variant(name, skip=why_not(name)) for name in VARIANTS],
        parameters={"task": task, "pauses": pauses, "size": SIZE},
        baseline="reference-pipeline",
        unit="MiB/s",
        warmup=1 if pauses == "real" else 0,
    )
    for pauses, storage in (("real", "as slow as a real sheepdog's"), ("none", "that costs nothing"))
    for task in ("get", "add")
]


def test_sheepdog_driver(recorded):
    recorded()
