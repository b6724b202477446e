"""eventlet's GreenPipe, in every style in which services read and write a child's pipes.

Parameters:

``style``
    ``"read"``: all at once; ``"read_n"``: ``read(n)``; ``"readinto"``: into one buffer of ``n`` bytes; ``"lines"``:
    iteration, binary; ``"text_lines"``: iteration, UTF-8; ``"write"``: all at once; ``"write_n"``: ``n`` bytes a time;
    ``"echo"``: ``n`` bytes to ``cat`` and back, again and again, as in a dialogue
``n``
    bytes of one read or write
``bufsize``
    of ``Popen``, which has its own default without it: under eventlet that is 0, with which upstream reads lines one
    byte at a time; with -1 the pipe is buffered
``size``
    bytes through the pipe
``most``
    at most so many of them, where stock takes microseconds for every byte
``settings``
    of fastio

In the measured pass the pieces are only counted, by C code as far as possible, so that it is the pipe that is measured;
they are hashed in a second pass of the same kind.
"""

import collections
import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from benchmarks.harness.modes import (
    GREEN,
    Mode,
    check_fast,
    choice,
    discard_command,
    discarded,
    enter,
    variants,
    warmed,
)
from benchmarks.harness.worker import Payload, measure, random_payload, text_payload

READ_STYLES = ("read", "read_n", "readinto", "lines", "text_lines")
WRITE_STYLES = ("write", "write_n")
STYLES = {**dict.fromkeys(READ_STYLES, "read"), **dict.fromkeys(WRITE_STYLES, "write"), "echo": "echo"}


def pieces(stream: Any, style: str, n: int) -> Iterable[Any]:
    """What is read from ``stream``, piece by piece, up to its end."""
    if style in ("lines", "text_lines"):
        return stream
    if style == "readinto":
        return _readinto(stream, memoryview(bytearray(n)))
    return iter(functools.partial(stream.read, *([n] if style == "read_n" else [])), b"")


def _readinto(stream: Any, buffer: memoryview) -> Iterator[memoryview]:
    while count := stream.readinto(buffer):
        yield buffer[:count]


def _buffering(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {"bufsize": parameters["bufsize"]} if "bufsize" in parameters else {}


def read(payload: Payload, parameters: Mapping[str, Any], take: Callable[[Iterable[Any]], object]) -> None:
    """Have ``take`` take the pieces of what a child writes, the payload."""
    import subprocess

    style = parameters["style"]
    encoding = "utf-8" if style == "text_lines" else None
    arguments = ["cat", str(payload.path)]
    options = _buffering(parameters)
    with subprocess.Popen(arguments, **options, stdout=subprocess.PIPE, encoding=encoding) as child:
        take(pieces(child.stdout, style, parameters.get("n", 0)))


def size_of(parameters: Mapping[str, Any]) -> int:
    """How many bytes go through the pipe."""
    return min(parameters["size"], parameters.get("most", parameters["size"]))


def measure_read(parameters: Mapping[str, Any]) -> dict[str, Any]:
    lines = parameters["style"] in ("lines", "text_lines")
    payload = warmed((text_payload if lines else random_payload)(size_of(parameters)))
    counts: list[int] = []
    with measure() as measured:
        read(payload, parameters, lambda found: counts.append(sum(map(len, found))))
    hasher = hashlib.sha256()

    def check(found: Iterable[Any]) -> None:
        for piece in found:
            hasher.update(piece.encode() if isinstance(piece, str) else piece)

    read(payload, parameters, check)
    characters = len(payload.path.read_text("utf-8")) if parameters["style"] == "text_lines" else payload.size
    return measured.result(bytes=payload.size, verified=counts == [characters] and hasher.hexdigest() == payload.sha256)


def write(arguments: list[str], parts: list[memoryview | bytes], options: Mapping[str, Any]) -> bytes:
    """Write the parts to a child; returns what it says."""
    import subprocess

    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, **options, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT) as child:
        assert child.stdin is not None and child.stdout is not None
        collections.deque(map(child.stdin.write, parts), maxlen=0)
        child.stdin.close()
        return child.stdout.read()


def measure_write(parameters: Mapping[str, Any]) -> dict[str, Any]:
    payload = random_payload(size_of(parameters))
    data = payload.path.read_bytes()
    n = parameters["n"] if parameters["style"] == "write_n" else len(data)
    parts: list[memoryview | bytes] = [data[start : start + n] for start in range(0, len(data), n)]
    options = _buffering(parameters)
    with measure() as measured:
        said = write(discard_command(), parts, options)
    checked = write(["sha256sum"], parts, options)
    verified = discarded(said) == payload.size and checked.decode().split()[0] == payload.sha256
    return measured.result(bytes=payload.size, verified=verified)


def _echo(data: bytes, n: int, take: Callable[[bytes], object]) -> None:
    import subprocess

    with subprocess.Popen(["cat"], bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None and child.stdout is not None
        for start in range(0, len(data), n):
            left = child.stdin.write(data[start : start + n])
            while left:
                answer = child.stdout.read(left)
                take(answer)
                left -= len(answer)


def measure_echo(parameters: Mapping[str, Any]) -> dict[str, Any]:
    payload = random_payload(size_of(parameters))
    data, n = payload.path.read_bytes(), parameters["n"]
    with measure() as measured:
        _echo(data, n, len)
    hasher = hashlib.sha256()
    _echo(data, n, hasher.update)
    return measured.result(bytes=payload.size, verified=hasher.hexdigest() == payload.sha256)


def run(mode: Mode, parameters: Mapping[str, Any]) -> dict[str, Any]:
    style = choice(parameters, "style", *STYLES)
    enter(mode, parameters)
    steps = {"read": measure_read, "write": measure_write, "echo": measure_echo}
    result = steps[STYLES[style]](parameters)
    # fastio's read() is too small to count what it does.
    if style in ("read", "readinto", *WRITE_STYLES):
        check_fast(mode, result["bytes"])
    return result


VARIANTS = variants(run, names=GREEN)
