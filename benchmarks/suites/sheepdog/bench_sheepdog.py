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
from typing import Any

from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.results import MIB

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


def _case(name: str, title: str, *variants: Variant | str, **fields: Any) -> Case:
    parameters = {"task": name.split("-")[-2], "pauses": name.split("-")[-1], **fields.pop("parameters")}
    return Case(
        name=name, title=title, workload="sheepdog", variants=variants, unit="MiB/s", parameters=parameters, **fields
    )  # fmt: skip


CASES = [
    Case(
        name="cat", title="execute('cat datafile', shell=True), random data", workload="sheepdog",
        variants=[
            "native-stock", Variant("eventlet-legacy", rounds=3, warmup=0), "eventlet-stock", "eventlet-fastio",
            "native-fastio", "reference-readall", *of_2016(),
        ],
        baseline="eventlet-stock", parameters={"task": "cat", "size": 200 * MIB},
    ),
]  # fmt: skip
# The second two find the files and the modules in the page cache that the first two have warmed.
for pauses, storage, warmup in (
    ("real", "storage as slow as a real sheepdog's", 1),
    ("none", "storage that costs nothing", 0),
):
    chunked: dict[str, Any] = {"baseline": "eventlet-stock", "warmup": warmup, "quick": QUICK}
    CASES += [
        _case(
            f"read-{pauses}", f"collie vdi read, one command per chunk, {storage}", "native-stock", "eventlet-stock",
            "eventlet-fastio", "native-fastio", "reference-readall", "reference-pipeline",
            *(of_2016() if pauses == "real" else []), parameters={"size": 256 * MIB, "chunk": CHUNK}, **chunked,
        ),
        _case(
            f"write-{pauses}", f"collie vdi write, one command per chunk, {storage}", "native-stock", SLOW_WRITER,
            "eventlet-fastio", "native-fastio", "reference-pipeline", parameters={"size": 2 * CHUNK, "chunk": CHUNK},
            **chunked,
        ),
        *(
            _case(
                f"driver-{task}-{pauses}", f"the driver's {task}() of an image, {storage}", "native-fastio",
                "eventlet-fastio", "reference-pipeline", baseline="reference-pipeline", warmup=warmup,
                parameters={"size": 256 * MIB}, needs=("glance_store",),
            )
            for task in ("get", "add")
        ),
    ]  # fmt: skip


def test_sheepdog(recorded):
    recorded()
