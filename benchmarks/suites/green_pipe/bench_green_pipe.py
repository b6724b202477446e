"""eventlet's GreenPipe in every style of reading and writing."""

from benchmarks.harness.engine import Case
from benchmarks.harness.modes import GREEN, KIB, MIB

BUFFERED = -1


def _case(name: str, title: str, size: int, **parameters: int | str) -> Case:
    return Case(
        name=name,
        title=f"GreenPipe: {title}",
        workload="green_pipe",
        variants=GREEN,
        parameters={"size": size, **parameters},
        baseline="eventlet-stock",
        quick={"size": min(size, MIB // 4)},
    )


# Where stock is slow the payload is smaller; its rate does not depend on it.
CASES = [
    _case("read", "read() of 200 MiB", 200 * MIB, style="read"),
    _case("read-buffered", "read() of 200 MiB, buffered", 200 * MIB, style="read", bufsize=BUFFERED),
    _case("read-1KiB", "read(1 KiB)", 50 * MIB, style="read_n", n=KIB),
    _case("read-1KiB-buffered", "read(1 KiB), buffered", 100 * MIB, style="read_n", n=KIB, bufsize=BUFFERED),
    _case("read-64KiB", "read(64 KiB)", 200 * MIB, style="read_n", n=64 * KIB),
    _case("read-64KiB-buffered", "read(64 KiB), buffered", 200 * MIB, style="read_n", n=64 * KIB, bufsize=BUFFERED),
    _case("read-1MiB", "read(1 MiB)", 200 * MIB, style="read_n", n=MIB),
    _case("read-1MiB-buffered", "read(1 MiB), buffered", 200 * MIB, style="read_n", n=MIB, bufsize=BUFFERED),
    _case("readinto-64KiB", "readinto() of 64 KiB", 200 * MIB, style="readinto", n=64 * KIB),
    _case("readinto-1MiB", "readinto() of 1 MiB", 200 * MIB, style="readinto", n=MIB),
    _case("lines", "lines with Popen's default under eventlet, no buffer", 100 * MIB, style="lines", most=64 * KIB),
    _case("lines-buffered", "lines of 100 MiB, buffered", 100 * MIB, style="lines", bufsize=BUFFERED),
    _case("lines-text", "lines of 100 MiB, text", 100 * MIB, style="text_lines"),
    _case("write", "write() of 200 MiB", 200 * MIB, style="write"),
    _case("write-buffered", "write() of 200 MiB, buffered", 200 * MIB, style="write", bufsize=BUFFERED),
    _case("write-1KiB", "writes of 1 KiB", 50 * MIB, style="write_n", n=KIB),
    _case("write-1KiB-buffered", "writes of 1 KiB, buffered", 100 * MIB, style="write_n", n=KIB, bufsize=BUFFERED),
    _case("write-64KiB", "writes of 64 KiB", 200 * MIB, style="write_n", n=64 * KIB),
    _case("echo", "100 bytes to cat and back, again and again", 100 * MIB, style="echo", n=100, most=MIB),
]


def test_green_pipe(recorded):
    recorded()
