"""``communicate(input)`` into a reader that discards. Figures are rates: stock eventlet gets less input than others."""

from benchmarks.harness.engine import Case
from benchmarks.harness.modes import KIB, MIB, MODES


def _case(name: str, title: str, through: str, size: int) -> Case:
    return Case(
        name=name,
        title=title,
        workload="input",
        variants=(*MODES, "reference-write"),
        parameters={"size": size, "stock_green_size": 8 * MIB, "through": through},
        baseline="eventlet-stock",
        quick={"size": MIB, "stock_green_size": 128 * KIB},
    )


CASES = [
    _case("popen-16MiB", "communicate(input) of 16 MiB, three pipes", "popen", 16 * MIB),
    _case("popen-200MiB", "communicate(input) of 200 MiB, three pipes", "popen", 200 * MIB),
    _case("oslo-200MiB", "processutils.execute(process_input) of 200 MiB", "oslo", 200 * MIB),
]


def test_input(recorded):
    recorded()
