"""eventlet's WSGI server with a response of 256 MiB, in chunks of all sizes, and sendall() of large buffers."""

from benchmarks.harness.engine import Case
from benchmarks.harness.modes import GIB, GREEN, KIB, MIB

CHUNKS = {"4KiB": 4 * KIB, "64KiB": 64 * KIB, "256KiB": 256 * KIB, "1MiB": MIB, "4MiB": 4 * MIB}
BUFFERS = {"4MiB": 4 * MIB, "16MiB": 16 * MIB}
TASKS = {"length": "with Content-Length", "chunked": "in chunked encoding"}


def _case(task: str, name: str, title: str, size: int, chunk: int) -> Case:
    return Case(
        name=f"{task}-{name}",
        title=title,
        workload="wsgi",
        variants=GREEN,
        parameters={"task": task, "size": size, "chunk": chunk},
        baseline="eventlet-stock",
        columns=("p99_ms", "worst_ms"),
        quick={"size": MIB, "chunk": min(chunk, MIB // 4)},
    )


CASES = [
    *(
        _case(task, name, f"WSGI server: 256 MiB {words}, chunks of {name}", 256 * MIB, chunk)
        for task, words in TASKS.items()
        for name, chunk in CHUNKS.items()
    ),
    *(_case("sendall", name, f"sendall() of 1 GiB, {name} a time", GIB, size) for name, size in BUFFERS.items()),
]


def test_wsgi(recorded):
    recorded()
