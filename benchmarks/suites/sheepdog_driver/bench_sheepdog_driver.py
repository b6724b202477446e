"""The sheepdog driver for today's glance_store, compared with the old driver and with ``dog`` without Python.

``pytest benchmarks/suites/sheepdog_driver/bench_sheepdog_driver.py`` measures all of it in about three minutes. The
rows of the old driver are measured if glance_store 1.0.1 is available; see :mod:`benchmarks.backends.old_sheepdog`.
``tox -e bench -- sheepdog_driver`` installs it.
"""

from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.modes import MIB
from benchmarks.suites.sheepdog_driver.workload import VARIANTS, why_not

SIZE = 256 * MIB

#: Stock eventlet writes 12 MiB/s. With as much as the others it would take most of the time.
SLOW_WRITER = {"size": 16 * MIB}


def _variant(name: str, task: str) -> Variant:
    if name == "eventlet-old" and task == "add":
        return Variant(name, parameters=SLOW_WRITER, warmup=0, rounds=3, skip=why_not(name))
    return Variant(name, skip=why_not(name))


CASES = [
    Case(
        name=f"{task}-{pauses}",
        title=f"{task}() of an image, storage {storage}",
        workload="sheepdog_driver",
        variants=[_variant(name, task) for name in VARIANTS],
        parameters={"task": task, "pauses": pauses, "size": SIZE},
        baseline="native-old",
        unit="MiB/s",
        warmup=1 if pauses == "real" else 0,
    )
    for pauses, storage in (("real", "as slow as a real sheepdog's"), ("none", "that costs nothing"))
    for task in ("get", "add")
]


def test_sheepdog_driver(recorded):
    recorded()
