"""The sheepdog case, the main job: a service reads and writes images through ``processutils.execute()``.

fastio's sheepdog driver for today's glance_store is compared with ``dog`` without Python (``-k driver``).

``pytest benchmarks/suites/sheepdog/bench_sheepdog.py`` measures all of it in about five minutes.
"""

from typing import Any

from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.results import MIB

#: Bytes per command of the driver.
CHUNK = 64 * MIB

#: Stock eventlet writes 12 MiB/s, and the old loop reads 20. With as much as the others, they would take most of the
#: time.
SLOW_WRITER = Variant("eventlet-stock", parameters={"size": 16 * MIB}, warmup=0)
SLOW_READER = Variant("eventlet-legacy", parameters={"size": 32 * MIB}, rounds=3, warmup=0)

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
            "native-stock", SLOW_READER, "eventlet-stock", "eventlet-fastio", "native-fastio", "reference-readall",
        ],
        baseline="eventlet-stock", parameters={"task": "cat", "size": 200 * MIB},
    ),
]  # fmt: skip
# The second two find the files and the modules in the page cache that the first two have warmed.
for pauses, storage, warmup in (
    ("real", "storage as slow as a real sheepdog's", 1),
    ("none", "storage that costs nothing", 0),
):
    common: dict[str, Any] = {"warmup": warmup, "long": pauses == "none"}
    chunked = {**common, "baseline": "eventlet-stock", "quick": QUICK}
    CASES += [
        _case(
            f"read-{pauses}", f"collie vdi read, one command per chunk, {storage}", "native-stock", "eventlet-stock",
            "eventlet-fastio", "native-fastio", "reference-readall", "reference-pipeline",
            parameters={"size": 256 * MIB, "chunk": CHUNK}, **chunked,
        ),
        _case(
            f"write-{pauses}", f"collie vdi write, one command per chunk, {storage}", "native-stock", SLOW_WRITER,
            "eventlet-fastio", "native-fastio", "reference-pipeline", parameters={"size": 2 * CHUNK, "chunk": CHUNK},
            **chunked,
        ),
        *(
            _case(
                f"driver-{task}-{pauses}", f"the driver's {task}() of an image, {storage}", "native-fastio",
                "eventlet-fastio", "reference-pipeline", baseline="reference-pipeline",
                parameters={"size": 256 * MIB}, needs=("glance_store",), **common,
            )
            for task in ("get", "add")
        ),
    ]  # fmt: skip


def test_sheepdog(recorded):
    recorded()
