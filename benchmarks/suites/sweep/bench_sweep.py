"""fastio's settings under eventlet: each combination of chunk, pipe and yield, and the recommended ones."""

import itertools

from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.modes import KIB, MIB
from fastio.config import format_size

CHUNKS = (64 * KIB, 256 * KIB, 512 * KIB, MIB, 4 * MIB)
PIPES = (64 * KIB, 256 * KIB, 512 * KIB, MIB)
YIELDS = (256 * KIB, 512 * KIB, MIB, 4 * MIB)


def _cell(chunk: int, pipe: int, turn: int) -> Variant:
    chosen = {"chunk_size": chunk, "pipe_size": pipe, "yield_bytes": turn}
    sizes = "/".join(format_size(size).replace(" ", "") for size in (chunk, pipe, turn))
    return Variant("eventlet-fastio", label=sizes, parameters=chosen)


CASES = [
    Case(
        name="grid",
        title="chunk / pipe / yield: reading 200 MiB alone; writing alone; 8 at a time beside a 1 ms heartbeat",
        workload="sweep",
        variants=[_cell(*cell) for cell in itertools.product(CHUNKS, PIPES, YIELDS)],
        parameters={"size": 200 * MIB, "transfers": 8, "transfer_size": 32 * MIB},
        baseline=_cell(MIB, MIB, MIB).title,
        columns=("input_mb_s", "together_mb_s", "p99_ms", "worst_ms"),
        quick={"size": MIB, "transfers": 2, "transfer_size": MIB},
        warmup=0,
    )
]


def test_sweep(recorded):
    recorded()
