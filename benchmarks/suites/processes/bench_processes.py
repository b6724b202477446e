"""Children's output and input, eventlet's GreenPipe, short commands, what others wait for meanwhile, and WSGI.

Stock and fastio are compared natively and under eventlet, all output and input also with other libraries.
"""

from collections.abc import Iterator
from typing import Any

from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.modes import GIB, GREEN, KIB, MIB, MODES
from benchmarks.operations import processes

#: Stock eventlet writes 512 bytes at a time: it is given less input, and rates are compared.
SLOW_WRITER = Variant("eventlet-stock", parameters={"size": 8 * MIB})
BUFFERED = -1


#: Those that a smoke run leaves out, since another one has the same call with other sizes.
LONG = (
    "output-popen-1MiB", "output-popen-16MiB", "output-popen-200MiB", "output-oslo-16MiB", "input-popen-200MiB",
    "pipe-read-64KiB", "pipe-read-1MiB", "pipe-write-64KiB", "transfers-1", "transfers-64", "wsgi-length-1MiB",
    "wsgi-chunked-1MiB", "sendall-16MiB", "true-1GiB",
)  # fmt: skip


def _case(name: str, title: str, operation: str, size: int, **parameters: Any) -> Case:
    fields = parameters.pop("fields", {})
    quick = {"size": min(size, MIB), **({"calls": 1} if "calls" in parameters else {})}
    return Case(
        **{
            "name": name, "title": title, "workload": "processes", "variants": tuple(MODES), "quick": quick,
            "baseline": "eventlet-stock", "parameters": {"operation": operation, "size": size, **parameters},
            "long": name in LONG, **fields,
        }
    )  # fmt: skip


def _peers(baseline: str, *modes: Variant | str) -> dict[str, Any]:
    peers = (Variant(name, skip=processes.why_not(name)) for name in processes.PEERS)
    return {"variants": (*modes, *peers), "baseline": baseline}


def _outputs() -> Iterator[Case]:
    for shown, size, calls in (("64KiB", 64 * KIB, 100), ("1MiB", MIB, 64), ("16MiB", 16 * MIB, 4)):
        yield _case(f"output-popen-{shown}", f"communicate(): {shown}", "child-output", size, calls=calls)
    yield _case("output-popen-200MiB", "communicate(): 200MiB", "child-output", 200 * MIB)
    yield _case(
        "output-oslo-16MiB", "processutils.execute(): 16MiB", "child-output", 16 * MIB, calls=4, through="oslo"
    )  # fmt: skip
    yield _case(
        "output-oslo-200MiB", "200 MiB of a child's output: processutils.execute(), and others", "child-output",
        200 * MIB, through="oslo", fields=_peers("eventlet-fastio", *MODES),
    )  # fmt: skip
    for name, words, own in (
        ("text", "as text", {"kind": "text"}), ("both", "on stdout and on stderr", {"streams": "both"}),
    ):  # fmt: skip
        yield _case(f"output-{name}-16MiB", f"communicate(): 16MiB {words}", "child-output", 16 * MIB, calls=4, **own)


def _inputs() -> Iterator[Case]:
    rows: tuple[Variant | str, ...] = (*(name for name in MODES if name != SLOW_WRITER.name), SLOW_WRITER)
    for shown, size in (("16MiB", 16 * MIB), ("200MiB", 200 * MIB)):
        title = f"communicate(input) of {shown}, three pipes"
        yield _case(f"input-popen-{shown}", title, "child-input", size, fields={"variants": rows})
    yield _case(
        "input-oslo-200MiB", "200 MiB of input to a child: processutils.execute(), and others", "child-input",
        200 * MIB, through="oslo", fields=_peers("eventlet-fastio", *rows),
    )  # fmt: skip


def _offsets() -> Iterator[Case]:
    for source, words in (("file", "a file in memory"), ("pipe", "cat, by a pipe of 1 MiB")):
        title = f"200 MiB of {words}, read into a buffer: where in its page that begins"
        rows = tuple(
            Variant("native-stock", f"{offset} bytes", {"offset": offset}) for offset in (0, 8, 16, 24, 32, 48, 64)
        )
        fields = {"variants": rows, "baseline": "16 bytes"}
        yield _case(f"offset-{source}", title, "read-at", 200 * MIB, source=source, fields=fields)


#: Of GreenPipe, where stock is slow the payload is smaller: title, operation, size, parameters.
PIPES: dict[str, tuple[str, str, int, dict[str, Any]]] = {
    "read": ("read() of 200 MiB", "pipe-read", 200 * MIB, {"style": "read"}),
    "read-1KiB": ("read(1 KiB)", "pipe-read", 50 * MIB, {"n": KIB}),
    "read-64KiB": ("read(64 KiB)", "pipe-read", 200 * MIB, {}),
    "read-1MiB": ("read(1 MiB)", "pipe-read", 200 * MIB, {"n": MIB}),
    "read-1MiB-buffered": ("read(1 MiB), buffered", "pipe-read", 200 * MIB, {"n": MIB, "bufsize": BUFFERED}),
    "readinto-1MiB": ("readinto() of 1 MiB", "pipe-read", 200 * MIB, {"style": "readinto", "n": MIB}),
    "lines": ("lines with Popen's default, no buffer", "pipe-read", 64 * KIB, {"style": "lines"}),
    "lines-buffered": ("lines, buffered", "pipe-read", 100 * MIB, {"style": "lines", "bufsize": BUFFERED}),
    "lines-text": ("lines of text", "pipe-read", 100 * MIB, {"style": "text_lines"}),
    "write": ("write() of 200 MiB", "pipe-write", 200 * MIB, {}),
    "write-1KiB": ("writes of 1 KiB", "pipe-write", 50 * MIB, {"n": KIB}),
    "write-64KiB": ("writes of 64 KiB", "pipe-write", 200 * MIB, {"n": 64 * KIB}),
    "write-buffered": ("write() of 200 MiB, buffered", "pipe-write", 200 * MIB, {"bufsize": BUFFERED}),
    "echo": ("100 bytes to cat and back, again and again", "pipe-echo", MIB, {"n": 100}),
}


def _green() -> Iterator[Case]:
    for name, (title, operation, size, own) in PIPES.items():
        fields = {"variants": GREEN, "quick": {"size": min(size, MIB // 4)}}
        yield _case(f"pipe-{name}", f"GreenPipe: {title}", operation, size, **own, fields=fields)
    # Enough heartbeats for a 99th percentile, in less than a minute of stock.
    for at_once, calls in {1: 10, 8: 3, 64: 1}.items():
        fields = {
            "variants": GREEN, "unit": "ms", "value": "p99_ms",
            "columns": ("p50_ms", "worst_ms", "arrival_p99_ms", "mb_s"),
        }  # fmt: skip
        yield _case(
            f"transfers-{at_once}", f"Lateness of a 1 ms heartbeat, 99th percentile, during {at_once} x 64 MiB",
            "child-output", 64 * MIB, through="oslo", at_once=at_once, calls=calls, heartbeat=1, fields=fields,
        )  # fmt: skip
    fields = {"variants": GREEN, "columns": ("p99_ms", "worst_ms")}
    for kind, words in (("length", "with Content-Length"), ("chunked", "in chunked encoding")):
        for shown, chunk in (("64KiB", 64 * KIB), ("1MiB", MIB)):
            yield _case(
                f"wsgi-{kind}-{shown}", f"WSGI server: 256 MiB {words}, chunks of {shown}", "wsgi-serving", 256 * MIB,
                kind=kind, chunk=chunk, heartbeat=1, fields=fields,
            )  # fmt: skip
    for shown, chunk in (("4MiB", 4 * MIB), ("16MiB", 16 * MIB)):
        own = {**fields, "quick": {"chunk": MIB // 4, "size": MIB}}
        yield _case(
            f"sendall-{shown}", f"sendall() of 256 MiB, {shown} a time", "wsgi-serving", 256 * MIB,
            kind="sendall", chunk=chunk, heartbeat=1, fields=own,
        )  # fmt: skip


def _command(name: str, title: str, task: str, commands: int, heap: int = 0) -> Case:
    return Case(
        name=name, title=title, workload="processes",
        variants=tuple(MODES),
        parameters={"task": task, "commands": commands, "heap": heap}, baseline="eventlet-stock", unit="ms",
        value="p50_ms", columns=("p90_ms",), quick={"commands": 3, "heap": min(heap, MIB)}, long=name in LONG,
    )  # fmt: skip


STARTS = {"patch": "that calls patch()", "run": "by fastio run", "child": "by a program under fastio run --children"}


def _start(task: str, words: str) -> Case:
    return Case(
        name=f"start-{task}", title=f"A Python that does nothing, {words}: CPU time, median", workload="processes",
        variants=("native-stock", "native-fastio"), parameters={"task": task, "commands": 10}, unit="ms",
        value="p50_ms", columns=("p90_ms",), quick={"commands": 2},
    )  # fmt: skip


CASES = [
    *_outputs(),
    *_inputs(),
    *_offsets(),
    *_green(),
    _command("true", 'processutils.execute("true"), median', "execute", 60),
    _command("true-1GiB", 'processutils.execute("true"), median, 1 GiB of heap in the parent', "execute", 30, GIB),
    _command(
        "late-exit", "A child that closes its outputs 1 ms before it exits: time beyond its life", "late_exit", 40
    ),
    *(_start(task, words) for task, words in STARTS.items()),
    _command("wait", "Popen.wait(timeout): time beyond the child's life", "wait", 18),
]


def test_processes(recorded):
    recorded()
