"""The workload matrix: object size x workers x reads to writes, and what limits each of the workloads.

The suite follows the study that found a Swift limited by its processors, although its bandwidth did not show why. A
case is one object size on a real Swift, and a row is one workload. The last cases repeat the study's finding. The same
servers run on all cores, on one core, and with a quota of CPU time. In some of these cases the processors are the
limit, in others they are not.
"""

from collections.abc import Iterator
from typing import Any

from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.modes import KIB, MIB

SIZES = [4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB]
WORKERS = [1, 8, 64]
#: Percent of the operations that read.
READS = [100, 80, 50, 0]
#: The size of a smoke run.
QUICK_SIZE = 64 * KIB

#: Bytes that all workers together may have under way: more would only wait, for longer than a workload lasts.
UNDER_WAY = 256 * MIB
#: Bytes of the objects that are read, and how many there are at the most.
READ, OBJECTS = 256 * MIB, 256

SECONDS = 3.0
#: The processors' time that the servers have with the quota, of the two of a small machine.
QUOTA = "0.75"
PROCESSORS = {"all-cores": "all", "one-core": "core", f"quota-{QUOTA}": QUOTA}

QUICK = {"seconds": 0.7, "objects": 4, "records": ""}


def shown(size: int) -> str:
    """As people say it, without a blank."""
    return f"{size // MIB}MiB" if size >= MIB else f"{size // KIB}KiB"


def ratio(reads: int) -> str:
    return f"{reads}:{100 - reads}"


def objects(size: int) -> int:
    """How many are read; the largest ones are two."""
    return max(2, min(OBJECTS, READ // size))


def _case(name: str, title: str, variants: tuple[Variant, ...], size: int, **fields: Any) -> Case:
    parameters = {
        "size": size, "objects": objects(size), "seconds": SECONDS, "processors": "all", "rate": 0, "think": 0,
        "workers": 1, "reads": 100,
    }  # fmt: skip
    parameters |= fields.pop("parameters", {})
    return Case(
        name=name, title=title, workload="workload_matrix", variants=variants, parameters=parameters,
        **{
            "rounds": 1, "warmup": 0, "unit": "MiB/s", "quick": QUICK, "backend": "swift", "prepare": "prepare",
            "finish": "finish", "needs": ("locust",), "timeout": 180,
            "columns": ("operations_per_second", "success_ratio", "whole_p50_ms", "whole_p99_ms", "machine_cpu",
                        "servers_cpu", "busiest_cpu", "generator_cpu", "memory_mib", "network_mib_s", "disk_mib_s"),
            **fields,
        },
    )  # fmt: skip


def _rows(case: str, size: int) -> Iterator[Variant]:
    for workers in WORKERS:
        for reads in READS:
            if workers == 1 or workers * size <= UNDER_WAY:
                title = f"{workers}w-{ratio(reads)}"
                parameters = {"workers": workers, "reads": reads, "records": f"workload_matrix/{case}/{title}"}
                yield Variant("run", label=title, parameters=parameters)


def _matrix() -> Iterator[Case]:
    for size in SIZES:
        name = f"swift-{shown(size)}"
        rows = tuple(_rows(name, size))
        yield _case(name, f"swift: objects of {shown(size)}", rows, size, long=size != QUICK_SIZE)


def _finding(name: str, title: str, size: int, long: bool = False, **parameters: Any) -> Case:
    """The same load on servers that have more and fewer processors."""
    variants = tuple(
        Variant("run", label=label, parameters={"processors": processors, "records": f"workload_matrix/{name}/{label}"})
        for label, processors in PROCESSORS.items()
    )
    return _case(f"cpu-{name}", title, variants, size, parameters=parameters, rounds=3, baseline="all-cores", long=long)


#: Cases of the finding -> whether the processors are the limit.
FINDING = {"cpu-reads": True, "cpu-writes": True, "cpu-path": False, "cpu-think": False}

CASES = [
    *_matrix(),
    _finding("reads", "the processors are the limit: 8 workers read 1 MiB", MIB, workers=8, reads=100),
    _finding("writes", "the processors are the limit: 16 workers write 64 KiB", 64 * KIB, True, workers=16, reads=0),
    _finding(
        "path", "the network is the limit: 8 workers read 1 MiB over a path of 20 MiB/s", MIB, workers=8, reads=100,
        rate=20 * MIB,
    ),
    _finding(
        "think", "the clients are the limit: 4 workers think 250 ms after each 64 KiB", 64 * KIB, workers=4, reads=80,
        think=0.25,
    ),
]  # fmt: skip


def test_workload_matrix(recorded):
    recorded()
