"""The sheepdog case, the main job: a service reads and writes images through ``processutils.execute()``.

``pytest benchmarks/suites/sheepdog/bench_sheepdog.py`` measures all of it in about three minutes. The rows of 2016
(Python 2.7, eventlet 0.17.4) are there where :mod:`benchmarks.suites.sheepdog.python27` has made them an environment.
"""

from benchmarks.harness.engine import Case, Variant
from benchmarks.suites.sheepdog import python27

MIB = 1 << 20

#: Bytes per command of the driver.
CHUNK = 64 * MIB

#: Stock eventlet writes 12 MiB/s. With as much as the others it would take most of the time.
SLOW_WRITER = Variant("eventlet-stock", parameters={"size": 16 * MIB}, warmup=0)

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
            "limit-readall",
            *python27.variants(),
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
                "limit-readall",
                "limit-pipeline",
                *(python27.variants() if pauses == "real" else []),
            ],
            baseline="eventlet-stock",
            unit="MiB/s",
            warmup=warmup,
            parameters={"task": "read", "pauses": pauses, "size": 256 * MIB, "chunk": CHUNK},
        ),
        Case(
            name=f"write-{pauses}",
            title=f"collie vdi write, one command per chunk, {storage}",
            workload="sheepdog",
            variants=["native-stock", SLOW_WRITER, "eventlet-fastio", "native-fastio", "limit-pipeline"],
            baseline="eventlet-stock",
            unit="MiB/s",
            warmup=warmup,
            parameters={"task": "write", "pauses": pauses, "size": 2 * CHUNK, "chunk": CHUNK},
        ),
    ]


def test_sheepdog(recorded):
    recorded()
