"""Peak memory beyond that of the start, as a multiple of the payload."""

from benchmarks.harness.engine import Case
from benchmarks.harness.modes import GREEN, KIB, MIB, MODES


def _case(task: str, title: str, variants: tuple[str, ...]) -> Case:
    return Case(
        name=task,
        title=f"Peak memory by payload: {title}, 200 MiB",
        workload="memory",
        variants=variants,
        parameters={"size": 200 * MIB, "stock_green_size": 8 * MIB, "task": task},
        baseline="eventlet-stock",
        unit="payloads",
        value="peak_ratio",
        quick={"size": MIB, "stock_green_size": 128 * KIB},
    )


CASES = [
    _case("output", "execute(binary=True)", (*MODES, "reference-readall")),
    _case("text", "execute() as text", tuple(MODES)),
    _case("input", "execute(process_input)", tuple(MODES)),
    _case("green_pipe", "GreenPipe.read()", GREEN),
]


def test_memory(recorded):
    recorded()
