"""Short commands: the cost of one, in a small parent and in one with a large heap, and how soon its end is noticed."""

from benchmarks.harness.engine import Case
from benchmarks.harness.modes import GIB, MIB, MODES


def _case(name: str, title: str, task: str, commands: int, heap: int = 0) -> Case:
    return Case(
        name=name,
        title=title,
        workload="commands",
        variants=tuple(MODES),
        parameters={"task": task, "commands": commands, "heap": heap},
        baseline="eventlet-stock",
        unit="ms",
        value="p50_ms",
        columns=("p90_ms",),
        quick={"commands": 3, "heap": min(heap, MIB)},
    )


CASES = [
    _case("true", 'processutils.execute("true"), median', "execute", 60),
    _case("true-1GiB", 'processutils.execute("true"), median, 1 GiB of heap in the parent', "execute", 30, heap=GIB),
    _case("late-exit", "A child that closes its outputs 1 ms before it exits: time beyond its life", "late_exit", 40),
    _case("wait", "Popen.wait(timeout): time beyond the child's life", "wait", 18),
]


def test_commands(recorded):
    recorded()
