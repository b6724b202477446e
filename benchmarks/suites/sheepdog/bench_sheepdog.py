"""The sheepdog case, the main job: a service reads and writes images through ``processutils.execute()``.

fastio's sheepdog driver for today's glance_store is compared with ``dog`` without Python (``-k driver``).

``pytest benchmarks/suites/sheepdog/bench_sheepdog.py`` measures all of it in about five minutes. The rows of 2016
(Python 2.7, eventlet 0.17.4) are measured if :mod:`benchmarks.suites.sheepdog.python27` has made an environment for
them.
"""

import os
import shutil
import sys
from pathlib import Path

from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.results import MIB
from benchmarks.suites.sheepdog import driver

#: Bytes per command of the driver.
CHUNK = 64 * MIB

#: Stock eventlet writes 12 MiB/s. With as much as the others it would take most of the time.
SLOW_WRITER = Variant("eventlet-stock", parameters={"size": 16 * MIB}, warmup=0)

#: What Python 2.7 runs, and the variable that names it; ``python27.py`` makes an environment.
SCRIPT = Path(__file__).resolve().with_name("script_py27.py")
PYTHON27 = "BENCHMARK_PYTHON27"

#: Variant of the script, rounds: without the patch of the time eventlet takes five seconds for 200 MiB.
ROWS = (("native", 7), ("eventlet", 3), ("eventlet-100MiB-reads", 7))


def of_2016() -> list[Variant]:
    """The rows of 2016; skipped, with the reason, where there is no interpreter for them."""
    python = os.environ.get(PYTHON27, "")
    if not python:
        skip = f"no Python of 2016: {PYTHON27} is not set (python -m benchmarks.suites.sheepdog.python27 makes one)"
    elif shutil.which(python) is None:
        skip = f"{PYTHON27} is {python!r}: there is no such program"
    else:
        skip = ""
    return [
        Variant(
            name=name,
            label=f"2016-{name}",
            parameters={"python3": sys.executable},
            rounds=rounds,
            warmup=1 if rounds > 3 else 0,
            python=python,
            script=str(SCRIPT),
            skip=skip,
        )
        for name, rounds in ROWS
    ]


#: Of a smoke run: two whole chunks and a rest; neither they nor the rest are whole objects of 4 MiB.
QUICK = {"size": MIB, "chunk": 400 << 10}

CASES = [
    Case(
        name="cat",
        title="execute('cat datafile', shell=True), random data",
        workload="sheepdog",
        variants=[
            "native-stock",
            Variant("eventlet-legacy", rounds=3, warmup=0),
            "eventlet-stock",
            "eventlet-fastio",
            "native-fastio",
            "reference-readall",
            *of_2016(),
        ],
        baseline="eventlet-stock",
        parameters={"task": "cat", "size": 200 * MIB},
    ),
]
# The second two find the files and the modules in the page cache that the first two have warmed.
for pauses, storage, warmup in (
    ("real", "storage as slow as a real sheepdog's", 1),
    ("none", "storage that costs nothing", 0),
):
    CASES += [
        Case(
            name=f"read-{pauses}",
            title=f"collie vdi read, one command per chunk, {storage}",
            workload="sheepdog",
            variants=[
                "native-stock",
                "eventlet-stock",
                "eventlet-fastio",
                "native-fastio",
                "reference-readall",
                "reference-pipeline",
                *(of_2016() if pauses == "real" else []),
            ],
            baseline="eventlet-stock",
            unit="MiB/s",
            warmup=warmup,
            parameters={"task": "read", "pauses": pauses, "size": 256 * MIB, "chunk": CHUNK},
            quick=QUICK,
        ),
        Case(
            name=f"write-{pauses}",
            title=f"collie vdi write, one command per chunk, {storage}",
            workload="sheepdog",
            variants=["native-stock", SLOW_WRITER, "eventlet-fastio", "native-fastio", "reference-pipeline"],
            baseline="eventlet-stock",
            unit="MiB/s",
            warmup=warmup,
            parameters={"task": "write", "pauses": pauses, "size": 2 * CHUNK, "chunk": CHUNK},
            quick=QUICK,
        ),
        *(
            Case(
                name=f"driver-{task}-{pauses}",
                title=f"the driver's {task}() of an image, {storage}",
                workload="sheepdog",
                variants=[
                    *(Variant(mode, skip=driver.why_not()) for mode in ("native-fastio", "eventlet-fastio")),
                    "reference-pipeline",
                ],
                baseline="reference-pipeline",
                unit="MiB/s",
                warmup=warmup,
                parameters={"task": task, "pauses": pauses, "size": 256 * MIB},
            )
            for task in ("get", "add")
        ),
    ]


def test_sheepdog(recorded):
    recorded()
