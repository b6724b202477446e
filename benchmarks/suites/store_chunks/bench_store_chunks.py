"""Chunk sizes of glance_store's drivers: fastio's default compared with others, which ``store_chunk_sizes`` sets.

A table shows what part of the best size's throughput the default reaches.
"""

from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.modes import KIB, MIB
from benchmarks.suites.store_chunks.tables import DEFAULT
from benchmarks.suites.stores.bench_stores import BACKENDS, READ_ONLY
from fastio.config import format_size

CHUNKS = (64 * KIB, 256 * KIB, MIB, 4 * MIB, 8 * MIB, 16 * MIB)

#: Bytes of an image; more where 256 MiB take but a moment.
SIZES = {"filesystem": 1024 * MIB, "http": 1024 * MIB, "cinder": 1024 * MIB, "s3": 512 * MIB, "rbd": 512 * MIB}


def _case(row: str, task: str, mode: str) -> Case:
    backend, parameters = BACKENDS[row]
    sizes = [
        Variant(f"{mode}-fastio", label=format_size(chunk).replace(" ", ""), parameters={"chunk": chunk})
        for chunk in CHUNKS
    ]
    return Case(
        name=f"{row}-{task}-{mode}",
        title=f"{row}: {task} by chunk size, {'under eventlet' if mode == 'eventlet' else 'natively'}",
        workload="stores",
        variants=[Variant(f"{mode}-fastio", label=DEFAULT), *sizes],
        parameters={"task": task, "size": SIZES.get(row, 256 * MIB) if task == "get" else 256 * MIB},
        rounds=5 if task == "get" else 3,
        baseline=DEFAULT,
        unit="MiB/s",
        columns=("chunks", "largest_chunk", *(("p99_ms",) if mode == "eventlet" else ())),
        backend=backend,
        backend_parameters=parameters,
        needs=("glance_store", "eventlet"),
        prepare="prepare",
        # One case of each mode shows that it works; the others differ in the backend only.
        long=row != "filesystem",
        warmup=0 if task == "add" else 1,
    )


CASES = [_case(row, "get", mode) for mode in ("native", "eventlet") for row in BACKENDS]
CASES += [_case(row, "add", "native") for row in BACKENDS if row not in READ_ONLY]


def test_store_chunks(recorded):
    recorded()
